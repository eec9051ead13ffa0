import { z } from 'zod';
import {
  ADVANCED_OPTION_NAMES,
  advancedOptions,
  commonOptions,
  type SessionOptions,
} from '../../../schema/session-options.ts';
import { listedAs } from '../../list-schema.ts';
import type { Arguments } from '../../arguments.ts';
import { nestFlat } from '../../arguments.ts';
import { defined } from '../fields.ts';

/** Listed by name and kind only; what an agent or a server looks like, Claude knows from Claude Code itself. */
const OBJECT = { type: 'object' };
const NAMES = { type: 'array', items: { type: 'string' } };

export const advanced = z
  .strictObject({
    ...advancedOptions,
    agents: listedAs(advancedOptions.agents, OBJECT),
    mcpServers: listedAs(advancedOptions.mcpServers, OBJECT),
    outputFormat: listedAs(advancedOptions.outputFormat, { ...OBJECT, description: '{type:"json_schema", schema}' }),
    thinking: listedAs(advancedOptions.thinking, {
      ...OBJECT,
      description: '{type:"adaptive"|"disabled"} or {type:"enabled", budgetTokens}',
    }),
    tools: listedAs(advancedOptions.tools, { anyOf: [NAMES, OBJECT] }),
    skills: listedAs(advancedOptions.skills, { anyOf: [NAMES, { const: 'all' }] }),
    settings: listedAs(advancedOptions.settings, { anyOf: [OBJECT, { type: 'string' }] }),
    plugins: listedAs(advancedOptions.plugins, { type: 'array', items: OBJECT }),
    taskBudget: listedAs(advancedOptions.taskBudget, { ...OBJECT, description: '{total}' }),
  })
  .partial();

/** The options of `claude_code`, as they stand in its arguments. */
export const optionArguments = z.strictObject({ ...commonOptions, advanced }).partial();

export function flatOptions({ advanced: nested, ...common }: z.infer<typeof optionArguments>): SessionOptions {
  return defined({ ...nested, ...common });
}

export function nestAdvanced(args: Arguments): Arguments {
  return nestFlat(args, 'advanced', ADVANCED_OPTION_NAMES);
}

export const compactStatuses = z.enum(['running', 'waiting_permission', 'idle', 'error', 'cancelled']);

/** What a session's start, reply or check may carry besides an error. */
export const checkOutput = z.looseObject({
  sessionId: z.string(),
  status: compactStatuses.optional(),
  pollInterval: z.number().optional(),
  resumeToken: z.string().optional(),
  warnings: z.array(z.string()).optional(),
  events: z.array(z.looseObject({ id: z.number(), type: z.string(), timestamp: z.string() })).optional(),
  nextCursor: z.number().optional(),
  cursorResetTo: z.number().optional(),
  truncated: z.boolean().optional(),
  truncatedFields: z.array(z.string()).optional(),
  actions: z
    .array(z.looseObject({ type: z.string(), requestId: z.string(), toolName: z.string(), summary: z.string() }))
    .optional(),
  result: z.looseObject({ result: z.string(), isError: z.boolean() }).optional(),
  activity: z.string().optional(),
  backgroundTasks: z.number().optional(),
  availableTools: z.array(z.looseObject({ name: z.string() })).optional(),
  cancelledAt: z.string().optional(),
  cancelledReason: z.string().optional(),
  cancelledSource: z.string().optional(),
  lastEventId: z.number().optional(),
  lastToolUseId: z.string().optional(),
  quietMs: z.number().optional(),
  isError: z.boolean().optional(),
  error: z.string().optional(),
});

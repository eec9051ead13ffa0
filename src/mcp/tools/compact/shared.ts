import { z } from 'zod';
import { attemptsAnswer, checkAnswer, checkedSession, compactStatus } from '../../../schema/results.ts';
import {
  ADVANCED_OPTION_NAMES,
  advancedOptions,
  commonOptions,
  type SessionOptions,
} from '../../../schema/session-options.ts';
import { listedAs, unlisted } from '../../list-schema.ts';
import type { Arguments } from '../../arguments.ts';
import { nestFlat } from '../../arguments.ts';
import { defined } from '../../../schema/json.ts';
import { waitMs } from '../fields.ts';

/** Listed by name and kind only; Claude knows what an agent or a server looks like from Claude Code itself. */
const OBJECT = { type: 'object' };
const NAMES = { type: 'array', items: { type: 'string' } };

const listedOptions = {
  additionalDirectories: advancedOptions.additionalDirectories.describe('to work in'),
  agents: listedAs(advancedOptions.agents, {
    ...OBJECT,
    description: '{"<name>": {description, prompt, tools?, model?}}',
  }),
  effort: advancedOptions.effort.describe('of thinking'),
  enableFileCheckpointing: advancedOptions.enableFileCheckpointing.describe('needed for rewind'),
  env: listedAs(advancedOptions.env, { ...OBJECT, description: 'added' }),
  maxBudgetUsd: advancedOptions.maxBudgetUsd.describe('stop at this cost'),
  mcpServers: listedAs(advancedOptions.mcpServers, {
    ...OBJECT,
    description: '{"<name>": {command, args?} or {type: "http", url}}',
  }),
  outputFormat: listedAs(advancedOptions.outputFormat, {
    ...OBJECT,
    description: '{type: "json_schema", schema}; gives result.structuredOutput',
  }),
  sandbox: listedAs(advancedOptions.sandbox, {
    ...OBJECT,
    description:
      'for commands; no network: {enabled: true, allowUnsandboxedCommands: false, network: {strictAllowlist: true}}, and disallow WebFetch',
  }),
  settingSources: listedAs(advancedOptions.settingSources, {
    ...NAMES,
    description: 'settings and CLAUDE.md to load: user, project, local (default all); [] isolates',
  }),
  workspace: listedAs(advancedOptions.workspace, {
    ...OBJECT,
    description: '{type: "worktree", base?, branch?}: its own git worktree',
  }),
  tools: listedAs(advancedOptions.tools, {
    anyOf: [NAMES, OBJECT],
    description: 'the only built-in tools; [] for none',
  }),
};

const rareOptions = Object.fromEntries(
  Object.entries(advancedOptions).map(([name, schema]) => [name, unlisted(schema)]),
) as unknown as typeof advancedOptions;

/** All of the less common options; rarely used ones are in the reference only. */
export const advanced = z
  .strictObject({ ...rareOptions, ...listedOptions })
  .partial()
  .describe('rarer options; more in the reference')
  .meta({
    note: 'Less common options, below. Each may also be given at top level, with the same meaning.',
    whenOmitted: 'none',
  });

/** The options of `claude_code`, as they stand in its arguments. */
export const optionArguments = z.strictObject({ ...commonOptions, advanced }).partial();

export function flatOptions({ advanced: nested, ...common }: z.infer<typeof optionArguments>): SessionOptions {
  return defined({ ...nested, ...common });
}

export function nestAdvanced(args: Arguments): Arguments {
  return nestFlat(args, 'advanced', ADVANCED_OPTION_NAMES);
}

/** How long a start or a reply waits. */
export const startWaitMs = waitMs.meta({
  note: 'Wait up to this long for the session to finish or ask something; the answer then has everything that `claude_code_check` would return.',
});

/** The error of a call. */
export const errorText = z
  .string()
  .optional()
  .meta({ note: '`Error [CODE]: what went wrong and what to do about it`.' });

const OBJECTS = { type: 'array', items: OBJECT };
const { actions, availableTools, events, lastAction, result, toolCall } = checkAnswer.shape;

/** What a start, a reply or a check may return: the fields of an answer, or an error. Listed without their contents. */
export const checkOutput = z
  .object({
    ...checkAnswer.shape,
    events: listedAs(events, OBJECTS),
    actions: listedAs(actions, OBJECTS),
    lastAction: listedAs(lastAction, OBJECT),
    result: listedAs(result, OBJECT),
    toolCall: listedAs(toolCall, OBJECT),
    availableTools: listedAs(availableTools, OBJECTS),
  })
  .partial()
  .extend({
    sessionId: checkAnswer.shape.sessionId,
    isError: z.boolean().optional().meta({ note: '`true` if the call itself failed.' }),
    error: errorText,
    sessionStatus: unlisted(compactStatus.optional()).meta({
      note: 'For a reply that was refused, whose `status` is `error`: the status of the session.',
    }),
  })
  .meta({ describedWith: 'claude_code_check' });

/** What a start may return besides. */
export const startOutput = checkOutput.extend({
  attempts: listedAs(attemptsAnswer.shape.attempts.optional(), OBJECTS),
});

/** What a check may return: about one session, or about several. */
export const checkedOutput = checkOutput.extend({
  sessionId: checkAnswer.shape.sessionId.optional(),
  sessions: listedAs(z.array(checkedSession).optional(), OBJECTS).meta({
    note: 'With `sessionIds`: one for each, with the fields of a check of it alone; for an unknown one, `error`.',
  }),
});

import { z } from 'zod';

/*
 * Every option a caller may set on a session, in one flat shape. The tools accept the rarer ones
 * nested under `advanced` or flat; from here on there is only this shape.
 */

const names = z.array(z.string().min(1));
/** Each tool call is checked against all of them. */
const MAX_RULE_CHARS = 16_384;
/**
 * Claude Code (2.1.325) tries every way to distribute a command over them: with 8 it did not finish one of 80 letters.
 */
const MAX_WILDCARDS = 5;
const toolRules = names
  .refine((rules) => rules.every((rule) => (rule.match(/\*+/g) ?? []).length <= MAX_WILDCARDS), {
    error: `A rule may have at most ${String(MAX_WILDCARDS)} wildcards; Claude Code hangs on more`,
  })
  .refine((rules) => rules.reduce((chars, rule) => chars + rule.length, 0) <= MAX_RULE_CHARS, {
    error: `All rules together may have at most ${String(MAX_RULE_CHARS)} characters`,
  });
const jsonObject = z.record(z.string(), z.unknown());

export const PERMISSION_MODES = ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto', 'bypassPermissions'] as const;
export const permissionMode = z.enum(PERMISSION_MODES);
export type PermissionMode = z.infer<typeof permissionMode>;

const presetSystemPrompt = z.strictObject({
  type: z.literal('preset'),
  preset: z.literal('claude_code'),
  append: z.string().optional(),
  excludeDynamicSections: z.boolean().optional(),
  snapshot: z.boolean().optional(),
});

const customSystemPrompt = z.strictObject({
  type: z.literal('custom'),
  prompt: z.string(),
  snapshot: z.boolean().optional(),
});

const thinking = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('adaptive'), display: z.enum(['summarized', 'omitted']).optional() }),
  z.strictObject({
    type: z.literal('enabled'),
    budgetTokens: z.int().positive().optional(),
    display: z.enum(['summarized', 'omitted']).optional(),
  }),
  z.strictObject({ type: z.literal('disabled') }),
]);

const agent = z.looseObject({ description: z.string(), prompt: z.string() });

/** In-process servers cannot be described in JSON, so `type: "sdk"` is not available here. */
const mcpServer = z.union([
  z.looseObject({ type: z.literal('stdio').optional(), command: z.string().min(1) }),
  z.looseObject({ type: z.enum(['sse', 'http']), url: z.string().min(1) }),
]);

const plugin = z.strictObject({
  type: z.literal('local'),
  path: z.string().min(1),
  skipMcpDiscovery: z.boolean().optional(),
});

export const timeoutMs = z.int().min(0).max(2_147_483_647);

/** The options that stand at the top level of `claude_code`. */
export const commonOptions = {
  cwd: z.string().min(1),
  allowedTools: toolRules,
  disallowedTools: toolRules,
  permissionMode,
  maxTurns: z.int().positive(),
  model: z.string().min(1),
  systemPrompt: z.union([z.string(), presetSystemPrompt, customSystemPrompt]),
  permissionRequestTimeoutMs: timeoutMs,
} as const;

/** The options that are listed under `advanced`. */
export const advancedOptions = {
  tools: z.union([names, z.strictObject({ type: z.literal('preset'), preset: z.literal('claude_code') })]),
  persistSession: z.boolean(),
  sessionInitTimeoutMs: z.int().positive().max(2_147_483_647),
  agents: z.record(z.string().min(1), agent),
  agent: z.string().min(1),
  maxBudgetUsd: z.number().positive(),
  effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']),
  betas: z.array(z.string().min(1)),
  additionalDirectories: names,
  outputFormat: z.strictObject({ type: z.literal('json_schema'), schema: jsonObject }),
  thinking,
  pathToClaudeCodeExecutable: z.string().min(1),
  mcpServers: z.record(z.string().min(1), mcpServer),
  sandbox: jsonObject,
  fallbackModel: z.string().min(1),
  enableFileCheckpointing: z.boolean(),
  includePartialMessages: z.boolean(),
  strictMcpConfig: z.boolean(),
  settingSources: z.array(z.enum(['user', 'project', 'local'])),
  debug: z.boolean(),
  debugFile: z.string().min(1),
  env: z.record(z.string().min(1), z.string()),
  title: z.string().min(1),
  skills: z.union([names, z.literal('all')]),
  plugins: z.array(plugin),
  pluginDelivery: z.enum(['argv', 'initialize']),
  settings: z.union([z.string().min(1), jsonObject]),
  planModeInstructions: z.string().min(1),
  taskBudget: z.strictObject({ total: z.int().positive() }),
  agentProgressSummaries: z.boolean(),
  forwardSubagentText: z.boolean(),
  includeHookEvents: z.boolean(),
  toolAliases: z.record(z.string().min(1), z.string().min(1)),
  toolConfig: jsonObject,
  projectConfigRoot: z.string().min(1),
  promptSuggestions: z.boolean(),
  verbatimPrompts: z.boolean(),
  workspace: z.strictObject({
    type: z.literal('worktree'),
    base: z.string().min(1).optional(),
    branch: z.string().min(1).optional(),
  }),
} as const;

export const COMMON_OPTION_NAMES = Object.keys(commonOptions) as (keyof typeof commonOptions)[];
export const ADVANCED_OPTION_NAMES = Object.keys(advancedOptions) as (keyof typeof advancedOptions)[];

export const sessionOptions = z.strictObject({ ...commonOptions, ...advancedOptions }).partial();

export type SessionOptions = z.infer<typeof sessionOptions>;
export type SessionOptionName = keyof SessionOptions;

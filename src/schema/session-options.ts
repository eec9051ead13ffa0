import { z } from 'zod';
import { SETTING_SOURCES } from './enums.ts';

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

const thinkingDisplay = z.enum(['summarized', 'omitted']).optional();

const thinking = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('adaptive'), display: thinkingDisplay }),
  z.strictObject({
    type: z.literal('enabled'),
    budgetTokens: z.int().positive().optional(),
    display: thinkingDisplay,
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

const OWN_SETTINGS = "from the user's Claude Code settings";

export const timeoutMs = z.int().min(0).max(2_147_483_647);

/** The options that stand at the top level of `claude_code`. */
export const commonOptions = {
  cwd: z.string().min(1).meta({
    note: 'Directory to work in; it must exist. A relative path is resolved against the server’s working directory.',
    whenOmitted: 'the client’s first root, else the server’s working directory',
  }),
  allowedTools: toolRules.meta({
    note: 'Tools that may be used without asking. Rules with an argument work too: `Bash(git diff *)`, with at most 5 wildcards; a tool of an MCP server is `mcp__<server>__<tool>`.',
    whenOmitted: 'none',
  }),
  disallowedTools: toolRules.meta({
    note: 'Tools that are refused, whatever `allowedTools` or a later answer says. Same rule syntax.',
    whenOmitted: 'none',
  }),
  permissionMode: permissionMode.meta({
    note:
      '`default` asks before anything risky; `acceptEdits` allows file edits; `plan` only plans and asks before it starts; ' +
      '`dontAsk` denies anything not allowed in advance; `auto` lets a model decide and asks when it cannot; ' +
      '`bypassPermissions` never asks and requires the operator’s `ALLOW_BYPASS`.',
    whenOmitted: '`default`',
  }),
  maxTurns: z.int().positive().meta({ note: 'Stop after this many turns of the model.', whenOmitted: 'no limit' }),
  model: z.string().min(1).meta({ note: 'Model to use, by name or alias.', whenOmitted: OWN_SETTINGS }),
  systemPrompt: z.union([z.string(), presetSystemPrompt, customSystemPrompt]).meta({
    note: 'A string replaces the system prompt. `{"type":"preset","preset":"claude_code","append":"…"}` keeps Claude Code’s own and adds to it. Claude Code records the prompt with the first message; `snapshot: false` renders it again each time, as a resume from disk does.',
    whenOmitted: 'Claude Code’s own',
  }),
  permissionRequestTimeoutMs: timeoutMs.meta({
    note: 'How long a request waits for an answer before it is denied; 0 means no limit.',
    whenOmitted: 'the server’s `PERMISSION_TIMEOUT_MS`',
  }),
} as const;

/** The options that are listed under `advanced`. */
export const advancedOptions = {
  tools: z.union([names, z.strictObject({ type: z.literal('preset'), preset: z.literal('claude_code') })]).meta({
    note: 'The built-in tools available: a list, `[]` for none, or the preset for all of them.',
    whenOmitted: 'all',
  }),
  persistSession: z.boolean().meta({
    note: '`false` writes no transcript: such a session can be neither forked nor resumed, and is never parked.',
    whenOmitted: '`true`',
  }),
  sessionInitTimeoutMs: z.int().positive().max(2_147_483_647).meta({
    note: 'How long Claude Code may take to report its start before the call fails.',
    whenOmitted: 'the server’s `START_TIMEOUT_MS`',
  }),
  agents: z.record(z.string().min(1), agent).meta({
    note: 'Sub-agents by name, each with `description` and `prompt`, and optionally `tools`, `model` and more.',
    whenOmitted: 'none',
  }),
  agent: z.string().min(1).meta({ note: 'Name of the agent that leads the main conversation.', whenOmitted: 'none' }),
  maxBudgetUsd: z
    .number()
    .positive()
    .meta({ note: 'Stop when the session has cost this many US dollars.', whenOmitted: 'no limit' }),
  effort: z
    .enum(['low', 'medium', 'high', 'xhigh', 'max'])
    .meta({ note: 'How much effort the model puts into its answers.', whenOmitted: OWN_SETTINGS }),
  betas: z
    .array(z.string().min(1))
    .meta({ note: 'Beta features of the API, by their header names.', whenOmitted: 'none' }),
  additionalDirectories: names.meta({ note: 'Further directories Claude may work in.', whenOmitted: 'none' }),
  outputFormat: z.strictObject({ type: z.literal('json_schema'), schema: jsonObject }).meta({
    note: 'JSON Schema for the final answer, which is then also returned as `result.structuredOutput`.',
    whenOmitted: 'free text',
  }),
  thinking: thinking.meta({
    note: 'Extended thinking: as much as the model sees fit, within a token budget, or none.',
    whenOmitted: OWN_SETTINGS,
  }),
  pathToClaudeCodeExecutable: z.string().min(1).meta({
    note: 'The Claude Code executable to run.',
    whenOmitted: 'the server’s `EXECUTABLE`, or the one bundled with the Agent SDK',
  }),
  mcpServers: z.record(z.string().min(1), mcpServer).meta({
    note: 'Further MCP servers by name: `{command, args?, env?}`, or `{type: "http" or "sse", url, headers?}`.',
    whenOmitted: 'none',
  }),
  sandbox: jsonObject.meta({ note: 'Claude Code’s sandbox settings for commands.', whenOmitted: OWN_SETTINGS }),
  fallbackModel: z.string().min(1).meta({
    note: 'Model to use when the main one is overloaded; several may be separated by commas.',
    whenOmitted: 'none',
  }),
  enableFileCheckpointing: z.boolean().meta({
    note: 'Keep copies of the files that Claude edits, so that `rewind` can restore them.',
    whenOmitted: '`false`',
  }),
  includePartialMessages: z.boolean().meta({
    note: 'Record text as it is being written, merged into one event per message.',
    whenOmitted: '`false`',
  }),
  strictMcpConfig: z.boolean().meta({ note: 'Use only the MCP servers in `mcpServers`.', whenOmitted: '`false`' }),
  settingSources: z.array(z.enum(SETTING_SOURCES)).meta({
    note: 'Which Claude Code settings files to read; `[]` reads none of them, nor CLAUDE.md.',
    whenOmitted: '`["user","project","local"]`',
  }),
  debug: z.boolean().meta({ note: 'Claude Code writes debug output.', whenOmitted: '`false`' }),
  debugFile: z.string().min(1).meta({ note: 'File for the debug output.', whenOmitted: 'none' }),
  env: z.record(z.string().min(1), z.string()).meta({
    note: 'Variables for Claude Code, on top of the server’s own. The operator’s variables cannot be set.',
    whenOmitted: 'none',
  }),
  title: z.string().min(1).meta({ note: 'Title of the session in lists.', whenOmitted: 'made by Claude Code' }),
  skills: z
    .union([names, z.literal('all')])
    .meta({ note: 'Skills Claude may use: names, or `"all"`.', whenOmitted: OWN_SETTINGS }),
  plugins: z
    .array(plugin)
    .meta({ note: 'Plugins in local directories to load for this session.', whenOmitted: 'none' }),
  pluginDelivery: z.enum(['argv', 'initialize']).meta({
    note: 'How plugins are passed to Claude Code; `initialize` helps where command lines must be short.',
    whenOmitted: '`argv`',
  }),
  settings: z.union([z.string().min(1), jsonObject]).meta({
    note: 'Additional Claude Code settings: an object, or the path of a settings file.',
    whenOmitted: 'none',
  }),
  planModeInstructions: z.string().min(1).meta({
    note: 'Replaces the instructions for plan mode.',
    whenOmitted: 'Claude Code’s own',
  }),
  taskBudget: z
    .strictObject({ total: z.int().positive() })
    .meta({ note: 'Tokens for the whole task; the model is told how many are left.', whenOmitted: 'none' }),
  agentProgressSummaries: z.boolean().meta({
    note: 'Occasional one-sentence summaries of what each sub-agent is doing, as progress events.',
    whenOmitted: '`false`',
  }),
  forwardSubagentText: z.boolean().meta({
    note: 'Events include the text of sub-agents, not only their tools.',
    whenOmitted: '`false`',
  }),
  includeHookEvents: z.boolean().meta({ note: 'Events for the start and end of hooks.', whenOmitted: '`false`' }),
  toolAliases: z.record(z.string().min(1), z.string().min(1)).meta({
    note: 'Tool names that map to another tool, such as `{"Bash": "mcp__box__bash"}`.',
    whenOmitted: 'none',
  }),
  toolConfig: jsonObject.meta({ note: 'Settings for individual built-in tools.', whenOmitted: 'none' }),
  projectConfigRoot: z.string().min(1).meta({
    note: 'Trusted checkout whose project settings apply if `cwd` is one of its worktrees.',
    whenOmitted: '`cwd`',
  }),
  promptSuggestions: z
    .boolean()
    .meta({ note: 'After a turn, an event with a suggested next prompt.', whenOmitted: '`false`' }),
  verbatimPrompts: z.boolean().meta({
    note: 'Prompts are taken as written: no `@file` mentions, no slash commands.',
    whenOmitted: '`false`',
  }),
  workspace: z
    .strictObject({
      type: z.literal('worktree'),
      base: z.string().min(1).optional(),
      branch: z.string().min(1).optional(),
    })
    .meta({
      note:
        '`{type: "worktree", base?, branch?}` gives the session a git worktree of the repository of `cwd`, on its own branch starting at `base` (a branch, tag or commit). ' +
        'Uncommitted changes in `cwd` stay there. Manage the work with `claude_code_session` and `diff`, `apply` or `discard`.',
      whenOmitted:
        'none: the session works in `cwd` itself; `base` defaults to what is checked out there, `branch` to `claude/<short id>`',
    }),
} as const;

export const COMMON_OPTION_NAMES = Object.keys(commonOptions) as (keyof typeof commonOptions)[];
export const ADVANCED_OPTION_NAMES = Object.keys(advancedOptions) as (keyof typeof advancedOptions)[];

export const sessionOptions = z.strictObject({ ...commonOptions, ...advancedOptions }).partial();

export type SessionOptions = z.infer<typeof sessionOptions>;
export type SessionOptionName = keyof SessionOptions;

const destination = z.enum(['userSettings', 'projectSettings', 'localSettings', 'session', 'cliArg']);
const rules = z.array(z.strictObject({ toolName: z.string(), ruleContent: z.string().exactOptional() }));
const behavior = z.enum(['allow', 'deny', 'ask']);
const directories = z.array(z.string());

/** A lasting change of permissions, as Claude Code suggests it with a request. */
export const permissionUpdate = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('addRules'), rules, behavior, destination }),
  z.strictObject({ type: z.literal('replaceRules'), rules, behavior, destination }),
  z.strictObject({ type: z.literal('removeRules'), rules, behavior, destination }),
  z.strictObject({ type: z.literal('setMode'), mode: permissionMode, destination }),
  z.strictObject({ type: z.literal('addDirectories'), directories, destination }),
  z.strictObject({ type: z.literal('removeDirectories'), directories, destination }),
]);

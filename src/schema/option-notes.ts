import type { SessionOptionName } from './session-options.ts';

/** What people read about one parameter. Not listed to clients: the tools list must stay small. */
export interface ParameterNote {
  readonly meaning: string;
  /** What applies if it is omitted; absent for a required parameter. */
  readonly default?: string;
}

const OWN_SETTINGS = "from the user's Claude Code settings";

/** Every option of a session, in the order of the schema. A new option does not compile until it is described. */
export const OPTION_NOTES: Readonly<Record<SessionOptionName, ParameterNote>> = {
  cwd: {
    meaning: 'Directory to work in; it must exist. A relative path is resolved against the server’s working directory.',
    default: 'the client’s first root, else the server’s working directory',
  },
  allowedTools: {
    meaning:
      'Tools that may be used without asking. Rules with an argument work too: `Bash(git diff *)`, with at most 5 wildcards; a tool of an MCP server is `mcp__<server>__<tool>`.',
    default: 'none',
  },
  disallowedTools: {
    meaning: 'Tools that are refused, whatever `allowedTools` or a later answer says. Same rule syntax.',
    default: 'none',
  },
  permissionMode: {
    meaning:
      '`default` asks before anything risky; `acceptEdits` allows file edits; `plan` only plans and asks before it starts; ' +
      '`dontAsk` denies anything not allowed in advance; `auto` lets a model decide and asks when it cannot; ' +
      '`bypassPermissions` never asks and requires the operator’s `ALLOW_BYPASS`.',
    default: '`default`',
  },
  maxTurns: { meaning: 'Stop after this many turns of the model.', default: 'no limit' },
  model: { meaning: 'Model to use, by name or alias.', default: OWN_SETTINGS },
  systemPrompt: {
    meaning:
      'A string replaces the system prompt. `{"type":"preset","preset":"claude_code","append":"…"}` keeps Claude Code’s own and adds to it. Claude Code records the prompt with the first message; `snapshot: false` renders it again each time, as a resume from disk does.',
    default: 'Claude Code’s own',
  },
  permissionRequestTimeoutMs: {
    meaning: 'How long a request waits for an answer before it is denied; 0 means no limit.',
    default: 'the server’s `PERMISSION_TIMEOUT_MS`',
  },

  tools: {
    meaning: 'The built-in tools available: a list, `[]` for none, or the preset for all of them.',
    default: 'all',
  },
  persistSession: {
    meaning: '`false` writes no transcript: such a session can be neither forked nor resumed, and is never parked.',
    default: '`true`',
  },
  sessionInitTimeoutMs: {
    meaning: 'How long Claude Code may take to report its start before the call fails.',
    default: 'the server’s `START_TIMEOUT_MS`',
  },
  agents: {
    meaning: 'Sub-agents by name, each with `description` and `prompt`, and optionally `tools`, `model` and more.',
    default: 'none',
  },
  agent: { meaning: 'Name of the agent that leads the main conversation.', default: 'none' },
  maxBudgetUsd: { meaning: 'Stop when the session has cost this many US dollars.', default: 'no limit' },
  effort: { meaning: 'How much effort the model puts into its answers.', default: OWN_SETTINGS },
  betas: { meaning: 'Beta features of the API, by their header names.', default: 'none' },
  additionalDirectories: { meaning: 'Further directories Claude may work in.', default: 'none' },
  outputFormat: {
    meaning: 'JSON Schema for the final answer, which is then also returned as `result.structuredOutput`.',
    default: 'free text',
  },
  thinking: {
    meaning: 'Extended thinking: as much as the model sees fit, within a token budget, or none.',
    default: OWN_SETTINGS,
  },
  pathToClaudeCodeExecutable: {
    meaning: 'The Claude Code executable to run.',
    default: 'the server’s `EXECUTABLE`, or the one bundled with the Agent SDK',
  },
  mcpServers: {
    meaning: 'Further MCP servers by name: `{command, args?, env?}`, or `{type: "http" or "sse", url, headers?}`.',
    default: 'none',
  },
  sandbox: { meaning: 'Claude Code’s sandbox settings for commands.', default: OWN_SETTINGS },
  fallbackModel: {
    meaning: 'Model to use when the main one is overloaded; several may be separated by commas.',
    default: 'none',
  },
  enableFileCheckpointing: {
    meaning: 'Keep copies of the files that Claude edits, so that `rewind` can restore them.',
    default: '`false`',
  },
  includePartialMessages: {
    meaning: 'Record text as it is being written, merged into one event per message.',
    default: '`false`',
  },
  strictMcpConfig: { meaning: 'Use only the MCP servers in `mcpServers`.', default: '`false`' },
  settingSources: {
    meaning: 'Which Claude Code settings files to read; `[]` reads none of them, nor CLAUDE.md.',
    default: '`["user","project","local"]`',
  },
  debug: { meaning: 'Claude Code writes debug output.', default: '`false`' },
  debugFile: { meaning: 'File for the debug output.', default: 'none' },
  env: {
    meaning: 'Variables for Claude Code, on top of the server’s own. The operator’s variables cannot be set.',
    default: 'none',
  },
  title: { meaning: 'Title of the session in lists.', default: 'made by Claude Code' },
  skills: { meaning: 'Skills Claude may use: names, or `"all"`.', default: OWN_SETTINGS },
  plugins: { meaning: 'Plugins in local directories to load for this session.', default: 'none' },
  pluginDelivery: {
    meaning: 'How plugins are passed to Claude Code; `initialize` helps where command lines must be short.',
    default: '`argv`',
  },
  settings: {
    meaning: 'Additional Claude Code settings: an object, or the path of a settings file.',
    default: 'none',
  },
  planModeInstructions: {
    meaning: 'Replaces the instructions for plan mode.',
    default: 'Claude Code’s own',
  },
  taskBudget: { meaning: 'Tokens for the whole task; the model is told how many are left.', default: 'none' },
  agentProgressSummaries: {
    meaning: 'Occasional one-sentence summaries of what each sub-agent is doing, as progress events.',
    default: '`false`',
  },
  forwardSubagentText: {
    meaning: 'Events include the text of sub-agents, not only their tools.',
    default: '`false`',
  },
  includeHookEvents: { meaning: 'Events for the start and end of hooks.', default: '`false`' },
  toolAliases: {
    meaning: 'Tool names that map to another tool, such as `{"Bash": "mcp__box__bash"}`.',
    default: 'none',
  },
  toolConfig: { meaning: 'Settings for individual built-in tools.', default: 'none' },
  projectConfigRoot: {
    meaning: 'Trusted checkout whose project settings apply if `cwd` is one of its worktrees.',
    default: '`cwd`',
  },
  promptSuggestions: { meaning: 'After a turn, an event with a suggested next prompt.', default: '`false`' },
  verbatimPrompts: {
    meaning: 'Prompts are taken as written: no `@file` mentions, no slash commands.',
    default: '`false`',
  },
  workspace: {
    meaning:
      '`{type: "worktree", base?, branch?}` gives the session a git worktree of the repository of `cwd`, on its own branch starting at `base` (a branch, tag or commit). ' +
      'Uncommitted changes in `cwd` stay there. Manage the work with `claude_code_session` and `diff`, `apply` or `discard`.',
    default:
      'none: the session works in `cwd` itself; `base` defaults to what is checked out there, `branch` to `claude/<short id>`',
  },
};

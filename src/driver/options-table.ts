import type { Options } from '@anthropic-ai/claude-agent-sdk';
import type { SessionOptionName } from '../schema/session-options.ts';
import { nearestName, quote, SettingsError } from '../config/bad-input.ts';
import type { Settings } from '../config/load-settings.ts';

type Shown = 'always' | 'sensitive' | 'never';

/**
 * How each option of the Agent SDK is handled. The record is exhaustive over `keyof Options`, so an SDK upgrade does
 * not compile until a new key is classified here.
 */
export type OptionClass =
  | {
      kind: 'exposed';
      /** Whether a caller's value may be shown again: to anyone, on request (`includeSensitive`), or never. */
      show: Shown;
      /**
       * Why setting it can grant permissions or run something; such a key is closed to callers where only a person may
       * grant.
       */
      grants?: string;
    }
  | { kind: 'owned'; why: string }
  | { kind: 'refused'; why: string };

const plain = { kind: 'exposed', show: 'always' } as const;
const granting = (grants: string, show: Shown = 'always') => ({ kind: 'exposed', show, grants }) as const;
const owned = (why: string) => ({ kind: 'owned', why }) as const;
const refused = (why: string) => ({ kind: 'refused', why }) as const;

export const SDK_OPTIONS = {
  additionalDirectories: granting('opens additional directories', 'sensitive'),
  agent: granting('an agent has its own tools and permission mode'),
  agentProgressSummaries: plain,
  agents: granting('an agent has its own tools, servers and permission mode', 'sensitive'),
  allowedTools: granting('approves tools in advance'),
  betas: plain,
  cwd: { kind: 'exposed', show: 'sensitive' },
  debug: plain,
  debugFile: granting('writes a file at a path chosen by the caller', 'sensitive'),
  disallowedTools: plain,
  effort: plain,
  enableFileCheckpointing: plain,
  env: granting('variables control what Claude Code runs and which hosts it talks to', 'never'),
  fallbackModel: plain,
  forwardSubagentText: plain,
  includeHookEvents: plain,
  includePartialMessages: plain,
  maxBudgetUsd: plain,
  maxTurns: plain,
  mcpServers: granting('starts programs and adds tools', 'never'),
  model: plain,
  outputFormat: plain,
  pathToClaudeCodeExecutable: granting('selects the program to run', 'sensitive'),
  permissionMode: granting('decides what needs permission at all'),
  persistSession: plain,
  planModeInstructions: { kind: 'exposed', show: 'sensitive' },
  pluginDelivery: plain,
  plugins: granting('a plugin brings hooks, servers and commands', 'sensitive'),
  projectConfigRoot: granting('takes hooks and rules from another directory', 'sensitive'),
  promptSuggestions: plain,
  sandbox: granting('can weaken the sandbox'),
  settingSources: granting('can drop the person’s own rules'),
  settings: granting('settings carry permission rules and hooks', 'never'),
  skills: granting('a skill can bring tools that need no approval'),
  strictMcpConfig: plain,
  systemPrompt: { kind: 'exposed', show: 'sensitive' },
  taskBudget: plain,
  thinking: plain,
  title: plain,
  toolAliases: granting('redirects one tool’s name to another tool'),
  toolConfig: plain,
  tools: plain,
  verbatimPrompts: plain,

  abortController: owned('cancelling is the cancel action'),
  allowDangerouslySkipPermissions: owned('follows permissionMode behind the operator’s gate'),
  canUseTool: owned('requests come back through the tools'),
  forkSession: owned('forking is a reply with forkSession'),
  loadTimeoutMs: owned('belongs to sessionStore'),
  managedSettings: owned('carries the operator’s rules'),
  onElicitation: owned('no one can be asked on behalf of another server here; it is declined'),
  resume: owned('resuming is a reply'),
  resumeSessionAt: owned('an option of a reply'),
  sessionId: owned('chosen by the server before the start'),
  sessionStore: owned('a hub mirrors the transcripts of sessions that can move to another'),
  sessionStoreFlush: owned('belongs to sessionStore'),
  spawnClaudeCodeProcess: owned('the server owns the process and its tree'),
  stderr: owned('kept for error messages'),

  continue: refused('the most recent conversation is ambiguous; reply to a session id'),
  executable: refused('Claude Code is a native program; there is no runtime to choose'),
  executableArgs: refused('Claude Code is a native program; there is no runtime to choose'),
  extraArgs: refused('arbitrary arguments would get around every rule; use the named option'),
  hooks: refused('callbacks cannot be expressed in JSON; put hooks into settings'),
  maxThinkingTokens: refused('deprecated; use thinking'),
  onUserDialog: refused('dialogs need a screen'),
  perTaskStopAffordance: refused('individual tasks cannot be controlled'),
  permissionPromptToolName: refused('would move decisions away from this server'),
  permissionPrompts: refused('would silence requests; use permissionMode dontAsk'),
  resumeDropsTurn: refused('use resumeSessionAt'),
  supportedDialogKinds: refused('dialogs need a screen'),
} as const satisfies Record<keyof Options, OptionClass>;

/** Our own options, without an SDK counterpart. */
export const SERVER_OPTIONS = {
  permissionRequestTimeoutMs: plain,
  sessionInitTimeoutMs: plain,
  workspace: plain,
} as const satisfies Record<string, OptionClass>;

type ExposedName<T> = { [K in keyof T]: T[K] extends { kind: 'exposed' } ? K : never }[keyof T];
export type ExposedSdkOption = ExposedName<typeof SDK_OPTIONS>;

/** Indexing both ways does not compile when the schema and the table expose different names. */
export function classOf(name: SessionOptionName): Extract<OptionClass, { kind: 'exposed' }> {
  const exposed: Pick<typeof SDK_OPTIONS, ExposedSdkOption> & typeof SERVER_OPTIONS = {
    ...SDK_OPTIONS,
    ...SERVER_OPTIONS,
  };
  return exposed[name];
}

/** Why a caller cannot set this SDK option; undefined for any other name. */
export function whyNotOffered(name: string): string | undefined {
  if (!Object.hasOwn(SDK_OPTIONS, name)) return undefined;
  const option: OptionClass = SDK_OPTIONS[name as keyof typeof SDK_OPTIONS];
  return option.kind === 'exposed' ? undefined : option.why;
}

/** The other way round: every exposed key has a schema. */
export const EXPOSED_OPTIONS = (Object.keys(SDK_OPTIONS) as (keyof typeof SDK_OPTIONS)[]).filter(
  (name): name is ExposedSdkOption & SessionOptionName => SDK_OPTIONS[name].kind === 'exposed',
);

/** Options that are not exposed may be listed too: they cannot be set anyway. */
const OPTION_NAMES: ReadonlySet<string> = new Set([...Object.keys(SDK_OPTIONS), ...Object.keys(SERVER_OPTIONS)]);

/**
 * The settings with the denied options under the names the rules use. An unknown name stops the start: a typo would
 * silently leave open what was meant to be closed.
 */
export function withKnownDenyOptions(settings: Settings): Settings {
  const denyOptions = settings.denyOptions.map((written) => {
    const name = written.replace(/^advanced\./, '');
    if (OPTION_NAMES.has(name)) return name;
    const nearest = nearestName(name, OPTION_NAMES);
    throw new SettingsError(
      `CLAUDE_CODE_MCP_DENY_OPTIONS (--deny-options) names ${quote(written)}, which is not an option${nearest === undefined ? '' : `; did you mean ${nearest}?`}`,
    );
  });
  return { ...settings, denyOptions };
}

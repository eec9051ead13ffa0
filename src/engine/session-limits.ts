import path from 'node:path';
import type { Settings } from '../config/load-settings.ts';
import type { SessionOptions } from '../schema/session-options.ts';

/*
 * What the operator's limits put upon a session. It is imposed whenever a process is started, be it the first of a session,
 * the next after it was parked, or that of a fork, and never kept among the session's own options: no caller can set it aside.
 */

export interface LaunchPlace {
  /** Whether what a directory brings along (hooks, rules, servers, skills) may be loaded. */
  readonly trusted: boolean;
  /** Where Claude Code keeps what it knows of this user. */
  readonly configDir: string;
}

export interface Imposed {
  readonly options: SessionOptions;
  /** Variables of Claude Code, over anything that was given. */
  readonly env: Readonly<Record<string, string>>;
  /** What a caller should know about it, one line each. */
  readonly warnings: readonly string[];
}

type Limits = Pick<Settings, 'approvals' | 'allowedDirs' | 'denyOptions'>;

/** Whether anything is limited that a slash command or an `@path` in a prompt would get around. */
export function drawsLimits({ approvals, allowedDirs, denyOptions }: Limits): boolean {
  return approvals === 'human' || allowedDirs !== undefined || denyOptions.length > 0;
}

/** Makes Claude Code attach no file that a prompt mentions. */
export const NO_MENTIONS_VARIABLE = 'CLAUDE_CODE_DISABLE_FILE_MENTIONS';

/**
 * Tools that Claude Code (2.1.325) runs without asking although they reach into other sessions of the user or leave
 * something behind that acts later.
 */
const ASK_BEFORE = [
  'ListAgents',
  'SendMessage',
  'CronCreate',
  'CronDelete',
  'CronList',
  'ScheduleWakeup',
  'RemoteTrigger',
  'PushNotification',
  'EnterWorktree',
  'ExitWorktree',
];

export function impose(limits: Limits, asked: SessionOptions, place: LaunchPlace): Imposed {
  if (!drawsLimits(limits)) return { options: asked, env: {}, warnings: [] };
  const options = { ...asked, verbatimPrompts: true };
  const env = { [NO_MENTIONS_VARIABLE]: '1' };
  if (limits.approvals !== 'human') return { options, env, warnings: [] };
  const supervised = { ...options, settings: withPersonAsked(options.settings, place.configDir) };
  if (place.trusted) return { options: supervised, env, warnings: [] };
  return {
    options: { ...supervised, settingSources: ['user'] },
    env,
    warnings: [untrusted(options.projectConfigRoot ?? options.cwd ?? '')],
  };
}

/** A rule to ask wins over one to allow, and over what Claude Code allows by itself. */
function withPersonAsked(given: SessionOptions['settings'], configDir: string): Record<string, unknown> {
  const settings = fields(given);
  const permissions = fields(settings['permissions']);
  const asked = Array.isArray(permissions['ask']) ? (permissions['ask'] as unknown[]) : [];
  return {
    ...settings,
    permissions: { ...permissions, ask: [...asked, ...ASK_BEFORE, `Edit(${memoryFiles(configDir)})`] },
    crossSessionInbound: 'refuse',
    autoDreamEnabled: false,
  };
}

/** Claude Code writes memory files in a folder of each project without asking. `//` begins an absolute path in a rule. */
function memoryFiles(configDir: string): string {
  const absolute = path.join(path.resolve(configDir), 'projects').replaceAll('\\', '/').replace(/^\/*/, '');
  return `//${absolute}/**`;
}

function untrusted(directory: string): string {
  return `${directory} has not been trusted in Claude Code by a person: its settings, hooks, rules, skills and MCP servers were left out, only those of the user count. To use them, run claude there once and accept the question, or have the operator allow the directory (CLAUDE_CODE_MCP_ALLOWED_DIRS).`;
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * claude-code-mcp as a library: sessions of Claude Code in your own process, driven directly or over MCP.
 * Importing it has no side effects: everything starts with `createEngine` and ends with `close`.
 */

import { randomUUID } from 'node:crypto';
import type { Transport } from '@modelcontextprotocol/server';
import packageJson from '../package.json' with { type: 'json' };
import { thisHost } from './config/host.ts';
import { inheritedEnvironment } from './config/child-environment.ts';
import { loadSettings, type Settings, type SettingsOverrides } from './config/load-settings.ts';
import { EngineClient } from './engine/client.ts';
import type { Engine } from './engine/engine.ts';
import { readRulesFile } from './engine/rules/standing/rules-file.ts';
import { hostEngine } from './engine/engine-host.ts';
import { withKnownDenyOptions } from './driver/options-table.ts';
import { LOCAL } from './engine/rules/access.ts';
import type { EngineServices } from './engine/ports.ts';
import { serverFactory } from './mcp/server.ts';
import { serveOver, type Connection } from './transports/stdio.ts';
import type { LogLevel } from './schema/setting-choices.ts';

export type { Transport } from '@modelcontextprotocol/server';
export { DomainError, type ErrorCode } from './errors/errors.ts';
export { SettingsError } from './config/bad-input.ts';
export type { Settings, SettingsOverrides } from './config/load-settings.ts';
export type { Answer, Command, DiskResume, QuestionAnswer } from './schema/commands.ts';
export type { SessionReading } from './engine/conversation/reading.ts';
export type { TurnResult } from './engine/conversation/turn-result.ts';
export type { RequestKind } from './schema/enums.ts';
export type { EventBody, RequestRecord, SessionEvent } from './schema/events.ts';
export type { ShownRecord as SessionRecord } from './schema/records.ts';
export type { PermissionMode, SessionOptions } from './schema/session-options.ts';
export type { Connection } from './transports/stdio.ts';

export interface EngineContext {
  /** Where sessions work when no directory is given. Defaults to the working directory of this process. */
  readonly cwd?: string;
  /** The environment for Claude Code, and the source of settings. Defaults to that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Receives what the command would write to stderr. By default warnings are emitted as process warnings. */
  readonly log?: EngineServices['log'];
}

/** Sessions of Claude Code: commands go in, records come out. The sessions it starts belong to this program. */
export interface ClaudeCodeEngine extends Pick<
  EngineClient,
  'execute' | 'read' | 'list' | 'listDisk' | 'untilAttention' | 'onNotice'
> {
  readonly settings: Settings;
  /** Ends its sessions and every process they started. Idempotent. */
  close(): Promise<void>;
}

/** What a server over an engine needs of it. */
const engines = new WeakMap<ClaudeCodeEngine, Engine>();

/**
 * An engine: starts sessions, continues them, answers their requests. Settings are the operator's rules; omitted ones
 * come from the `CLAUDE_CODE_MCP_` variables and the defaults. An invalid value throws a `SettingsError`.
 */
export function createEngine(overrides: SettingsOverrides = {}, context: EngineContext = {}): ClaudeCodeEngine {
  const { env, cwd, ...machine } = thisHost();
  const source = { argv: [], ...machine, env: { ...(context.env ?? env) }, cwd: context.cwd ?? cwd };
  const settings = withKnownDenyOptions(loadSettings(source, overrides));
  const hosted = hostEngine(settings, {
    ...machine,
    env: inheritedEnvironment(source, settings, overrides),
    cwd: source.cwd,
    log: context.log ?? warnProcess,
    standingRules: settings.rules === undefined ? undefined : readRulesFile(settings.rules),
  });
  void hosted.sweep();
  const { engine } = hosted;
  const client = new EngineClient(engine, { principal: LOCAL, showsForms: false });
  const created = Object.assign(client, { settings, close: () => engine.close() });
  engines.set(created, engine);
  return created;
}

export interface ClaudeCodeServer {
  /** Serves one client over this transport, or over stdin and stdout. May be called again for a further client. */
  connect(transport?: Transport): Connection;
  /** Ends all connections, and the engine with its sessions and processes. Idempotent. */
  close(): Promise<void>;
}

/**
 * The MCP server over an engine; which toolset it offers is a setting of the engine. Its clients share the sessions they
 * start: a form about one is shown to them, never to a client of another server over the same engine.
 */
export function createServer(over: ClaudeCodeEngine): ClaudeCodeServer {
  const engine = engines.get(over);
  if (!engine) throw new TypeError('createServer takes what createEngine returned.');
  const identity = { name: 'claude-code-mcp', version: packageJson.version };
  const id = randomUUID();
  const factory = serverFactory(engine, identity, {
    id,
    name: `server ${id}`,
    kind: 'program',
    role: 'caller',
    attended: true,
  });
  const connections = new Set<Connection>();
  return {
    connect(transport) {
      const connection = serveOver(transport, factory, () => undefined);
      connections.add(connection);
      return connection;
    },
    async close() {
      await engine.close();
      await Promise.all([...connections].map((connection) => connection.close()));
    },
  };
}

function warnProcess(level: LogLevel, line: string): void {
  if (level === 'warn' || level === 'error') process.emitWarning(line, 'ClaudeCodeMcpWarning');
}

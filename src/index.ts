/**
 * claude-code-mcp as a library: sessions of Claude Code in your own process, driven directly or over MCP.
 * Importing it has no side effects: everything starts with `createEngine` and ends with `close`.
 */

import { randomUUID } from 'node:crypto';
import type { Transport } from '@modelcontextprotocol/server';
import packageJson from '../package.json' with { type: 'json' };
import { thisHost } from './config/host.ts';
import { inheritedEnvironment } from './config/inherited-environment.ts';
import { loadSettings, type SettingsOverrides } from './config/load-settings.ts';
import type { Engine } from './engine/engine.ts';
import { hostEngine } from './engine/engine-host.ts';
import { withKnownDenyOptions } from './engine/rules/known-deny-options.ts';
import type { EngineServices } from './engine/ports.ts';
import { serverFactory } from './mcp/server.ts';
import { serveOver, type Connection } from './transports/stdio.ts';
import type { LogLevel } from './schema/setting-choices.ts';

export type { Transport } from '@modelcontextprotocol/server';
export { untilAttention } from './engine/session/attention.ts';
export { DomainError, type ErrorCode } from './errors/errors.ts';
export { SettingsError } from './config/settings-error.ts';
export type { Settings, SettingsOverrides } from './config/load-settings.ts';
export type { Answer, DiskResume, QuestionAnswer } from './schema/commands.ts';
export type { Engine } from './engine/engine.ts';
export type { ReplyRequest, StartRequest } from './engine/session/start-request.ts';
export type { OpenRequest } from './engine/requests/requests.ts';
export type { DiskQuery, DiskSession } from './engine/ports.ts';
export type { Session } from './engine/session/session.ts';
export type { TurnResult } from './engine/conversation/turn-result.ts';
export type { RequestKind } from './schema/enums.ts';
export type { EventBody, SessionEvent } from './schema/events.ts';
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

/**
 * An engine: starts sessions, continues them, answers their requests. Settings are the operator's rules; omitted ones
 * come from the `CLAUDE_CODE_MCP_` variables and the defaults. An invalid value throws a `SettingsError`.
 * `engine.close()` ends its sessions and every process they started.
 */
export function createEngine(overrides: SettingsOverrides = {}, context: EngineContext = {}): Engine {
  const { env, cwd, ...machine } = thisHost();
  const source = { argv: [], ...machine, env: { ...(context.env ?? env) }, cwd: context.cwd ?? cwd };
  const settings = withKnownDenyOptions(loadSettings(source, overrides));
  const hosted = hostEngine(settings, {
    ...machine,
    env: inheritedEnvironment(source, settings, overrides),
    cwd: source.cwd,
    log: context.log ?? warnProcess,
  });
  void hosted.sweep();
  return hosted.engine;
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
export function createServer(engine: Engine): ClaudeCodeServer {
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

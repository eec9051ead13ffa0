import { randomInt } from 'node:crypto';
import {
  McpServer,
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  type ServerContext,
  type Tool as ListedTool,
} from '@modelcontextprotocol/server';
import type { Settings } from '../config/load-settings.ts';
import { EngineClient } from '../engine/client.ts';
import type { Engine } from '../engine/engine.ts';
import type { Principal } from '../engine/rules/access.ts';
import type { Rules } from '../engine/rules/rules.ts';
import type { ProtocolEra } from '../schema/enums.ts';
import { calledOnce, callTool, type CallOnce } from './call-tool.ts';
import type { CallPart, Tool, ToolContext } from './define-tool.ts';
import { EXTRA_CAPABILITIES, offerExtras } from './extras.ts';
import { CallForms, createCallStates, ModernClient } from './forms/call-forms.ts';
import { LegacyClient } from './forms/client-forms.ts';
import { observed, type Observer } from './observe.ts';
import type { Outbox } from './outbox.ts';
import { ConnectionRoots, rootsOfCall } from './roots.ts';
import { TOOL_LISTING } from './tool-listing.ts';

export interface ServerIdentity {
  name: string;
  version: string;
}

/** Creates the MCP servers over one engine. A `client` outlives the connection; its creator disconnects it. */
export type ServerFactory = (connection: { era: ProtocolEra; client?: ModernClient }) => McpServer;

export interface ServerOptions {
  /** The connection's settings, including its toolset; the operator's unless it has its own. */
  readonly rules?: Rules;
  /** Signs the state of a repeated call. Valid for this factory only, unless given. */
  readonly states?: ReturnType<typeof createCallStates>;
  /** Whether the folders that the client has open are folders of this machine. */
  readonly takesRoots?: boolean;
  /** Told of every request and of the end of every connection. */
  readonly observe?: Observer | undefined;
  /** If there is a store to remember them: runs each idempotency key once. */
  readonly once?: CallOnce | undefined;
  /** What the client has not read yet: large answers wait for it. */
  readonly outbox?: Outbox | undefined;
}

/**
 * One server is created per connection (and for probes), so it keeps no state of its own; what a call left behind
 * outlives it. All its connections act for one principal.
 */
export function serverFactory(
  engine: Engine,
  identity: ServerIdentity,
  principal: Principal,
  { rules, states = createCallStates(), takesRoots = true, observe, once, outbox }: ServerOptions = {},
): ServerFactory {
  const shared: Shared = { engine, identity, principal, rules, states, takesRoots, observe, once, outbox };
  return ({ era, client }) => createMcpServer(shared, era, client);
}

/** The description of `claude_code` names the tools of Claude Code, so that list follows them; the other stays. */
const LIST_FOLLOWS_TOOLS: Readonly<Record<Settings['toolset'], boolean>> = { compact: true, explicit: false };

interface Shared {
  engine: Engine;
  identity: ServerIdentity;
  principal: Principal;
  rules: Rules | undefined;
  states: ReturnType<typeof createCallStates>;
  takesRoots: boolean;
  observe: Observer | undefined;
  once: CallOnce | undefined;
  outbox: Outbox | undefined;
}

function createMcpServer(
  { identity, principal, rules, states, takesRoots, observe, once, outbox, ...shared }: Shared,
  era: ProtocolEra,
  lasting: ModernClient | undefined,
): McpServer {
  const { toolset } = rules?.settings ?? shared.engine.settings;
  const listFollowsTools = LIST_FOLLOWS_TOOLS[toolset];
  const connection = new McpServer(
    { ...identity, title: 'Claude Code' },
    {
      capabilities: { tools: { listChanged: listFollowsTools }, ...EXTRA_CAPABILITIES },
      instructions: INSTRUCTIONS[toolset],
      requestState: states,
    },
  );
  // The low-level server: `McpServer` would answer a bad argument in its own words and convert schemas at every start.
  const { server } = connection;
  // The library (2.4.0) numbers its requests to a client from 0 on every connection. A client that outlives this
  // process could answer an old form when a new one has its number. Can go when the library makes them unique.
  Object.assign(server, { _requestMessageId: randomInt(2 ** 47) });
  const client =
    lasting ?? (era === 'modern' ? new ModernClient(principal, rules) : new LegacyClient(principal, server, rules));
  const engine = new EngineClient(shared.engine, client);
  const roots = new ConnectionRoots(server);
  server.setRequestHandler('tools/list', () =>
    observed(observe, { method: 'tools/list' }, async () => ({ tools: await listTools(engine) })),
  );
  const call = async (request: CallToolRequest, ctx: ServerContext): Promise<CallToolResult | InputRequiredResult> => {
    const tools = await loadTools(toolset);
    const tool = tools.find(({ name }) => name === request.params.name);
    if (!tool) {
      const outcome = 'INVALID_ARGUMENT';
      engine.record({ kind: 'tool_call', what: request.params.name.slice(0, 100), outcome });
      return unknownTool(request.params.name, tools);
    }
    // Not before its first call, because a probe never makes one.
    engine.connect();
    if (client instanceof ModernClient) client.calls(ctx);
    const forms = client instanceof ModernClient ? new CallForms(engine, states, ctx) : undefined;
    let defaultDirectory: string | undefined;
    if (takesRoots && wantsDirectory(tool, request.params.arguments, engine) && forms?.isRepeat !== true) {
      const found = era === 'modern' ? rootsOfCall(ctx) : await roots.first();
      if ('ask' in found) return found.ask;
      defaultDirectory = found.directory;
    }
    const { signal } = ctx.mcpReq;
    const turn = outbox?.answer();
    const context: ToolContext = { engine, signal, progress: progressTo(ctx), forms, defaultDirectory, turn };
    const run = (part?: CallPart): Promise<CallToolResult | InputRequiredResult> =>
      callTool(tool, request.params.arguments, { ...context, part }).finally(() => turn?.end());
    return once && !tool.isRead(request.params.arguments ?? {})
      ? calledOnce(once, request, ctx, principal, run)
      : run();
  };
  server.setRequestHandler('tools/call', (request, ctx) => {
    // Names made up by callers must not become metric labels.
    const known = TOOL_LISTING[toolset].find(({ name }) => name === request.params.name);
    return observed(observe, { method: 'tools/call', ...(known && { tool: known.name }) }, () => call(request, ctx));
  });
  const withdrawExtras = offerExtras(connection, engine, era, observe, outbox);
  const openedAt = performance.now();
  const unsubscribe = engine.onToolsChanged(() => {
    // Before the handshake, and on a probe, there is no client to notify.
    if (listFollowsTools) server.sendToolListChanged().catch(() => undefined);
  });
  server.onclose = () => {
    unsubscribe();
    withdrawExtras();
    // A modern connection over HTTP is one request long.
    if (!lasting) observe?.({ kind: 'connection', seconds: (performance.now() - openedAt) / 1000 });
    if (!lasting) engine.disconnect();
  };
  return connection;
}

let toolsets: Promise<Readonly<Record<Settings['toolset'], readonly Tool[]>>> | undefined;

/** Separate from startup: a server's first response is its list, which needs neither handlers nor schemas. */
async function loadTools(toolset: Settings['toolset']): Promise<readonly Tool[]> {
  toolsets ??= import('./toolsets.ts').then(({ TOOLSETS }) => TOOLSETS);
  return (await toolsets)[toolset];
}

async function listTools({ toolset, tools: knownTools }: EngineClient): Promise<ListedTool[]> {
  const listing = TOOL_LISTING[toolset];
  if (knownTools === undefined || !LIST_FOLLOWS_TOOLS[toolset]) return [...listing];
  const tools = await loadTools(toolset);
  return listing.map((listed, index) => ({ ...listed, description: tools[index]?.describe(knownTools) }));
}

/** A start that names no directory. Where callers may not name one, the client's folder does not count either. */
function wantsDirectory(
  { directoryParameter }: Tool,
  args: Record<string, unknown> | undefined,
  { followsRoots }: EngineClient,
): boolean {
  if (directoryParameter === undefined || !followsRoots) return false;
  return (args?.[directoryParameter] ?? undefined) === undefined;
}

function progressTo({ mcpReq }: ServerContext): ToolContext['progress'] {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let progress = 0;
  return (message) => {
    progress++;
    // A client that has disconnected needs no progress.
    mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      .catch(() => undefined);
  };
}

function unknownTool(
  name: string,
  tools: readonly Tool[],
): { content: { type: 'text'; text: string }[]; isError: true } {
  const error = `Error [INVALID_ARGUMENT]: No tool ${name}; there are ${tools.map((tool) => tool.name).join(', ')}.`;
  return { content: [{ type: 'text', text: JSON.stringify({ isError: true, error }) }], isError: true };
}

/** What the calling model is told about the whole toolset: the shortest way through a task. */
const INSTRUCTIONS: Record<Settings['toolset'], string> = {
  compact:
    'Drives Claude Code as an autonomous coding agent; one call per decision. Start: claude_code {prompt, cwd, waitMs: 45000}. ' +
    'Status "waiting_permission": answer one of actions with claude_code_check {action: "respond_permission", sessionId, requestId, decision, waitMs: 45000} ' +
    '(a question: decision "allow" with permissionOptions.answers); the answer contains what comes next. With askedPerson a person is deciding: wait again. ' +
    'Status "running": claude_code_check {action: "wait", sessionId}. Status "idle": result.result is what Claude claims, result.work is what happened; ' +
    'read result.attention and work.problems (failed and denied tool calls) before you believe it. ' +
    'Parallel attempts take two calls: claude_code {prompt, cwd, attempts: 3, waitMs: 45000} runs them side by side, each in its own worktree ' +
    '(until all rest: claude_code_check {action: "wait", sessionIds}; their diffs: claude_code_session {action: "compare", sessionId}); ' +
    'claude_code_session {action: "apply", sessionId, options: {discardOthers: true}} takes the best. ' +
    'Continue: claude_code_reply {sessionId, prompt, waitMs: 45000}. An unanswered request is denied when it expires. Nothing is lost when a call times out: wait again.',
  explicit:
    'Drives Claude Code as an autonomous coding agent; one call per decision. Start: claude_create_session {prompt, workingDirectory, waitMs: 45000}. ' +
    'Status "waiting_for_input": answer one of pendingInputs with claude_respond {sessionId, inputId, decision, waitMs: 45000} ' +
    '(a question: decision "allow" with answers); the answer contains what comes next. With askedPerson a person is deciding: wait again. ' +
    'Status "running": claude_get_status {sessionId, waitMs: 45000}. Status "completed": result is what Claude claims, work is what happened; ' +
    'read attention and work.problems (failed and denied tool calls) before you believe it. ' +
    'Parallel attempts: one session per git worktree (workingDirectory), compare their work, merge the best; work.shared means that two sessions worked in the same one. ' +
    'Continue: claude_send_message {sessionId, message, waitMs: 45000}. An unanswered request is denied when it expires. Nothing is lost when a call times out: check again.',
};

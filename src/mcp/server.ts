import { McpServer, type ServerContext, type Tool as ListedTool } from '@modelcontextprotocol/server';
import type { Settings } from '../config/load-settings.ts';
import type { Engine } from '../engine/engine.ts';
import { callTool } from './call-tool.ts';
import type { Tool, ToolContext } from './define-tool.ts';
import { CallForms, createCallStates } from './forms/call-forms.ts';
import { FormDesk } from './forms/form-desk.ts';
import { PushedForms } from './forms/pushed-forms.ts';
import { INSTRUCTIONS } from './instructions.ts';
import { TOOL_LISTING } from './tool-listing.ts';

export interface ServerIdentity {
  name: string;
  version: string;
}

/** Makes the MCP servers over one engine. */
export type ServerFactory = (connection: { era: 'legacy' | 'modern' }) => McpServer;

/**
 * One server is made for each connection (and for probes), so it keeps no state of its own; what was asked and what a
 * call left behind outlive it.
 */
export function serverFactory(engine: Engine, identity: ServerIdentity): ServerFactory {
  const shared: Shared = { engine, identity, desk: new FormDesk(engine), states: createCallStates() };
  return ({ era }) => createMcpServer(shared, era);
}

/** The description of `claude_code` names the tools of Claude Code, so that list follows them; the other stays. */
const LIST_FOLLOWS_TOOLS: Readonly<Record<Settings['toolset'], boolean>> = { compact: true, explicit: false };

interface Shared {
  engine: Engine;
  identity: ServerIdentity;
  desk: FormDesk;
  states: ReturnType<typeof createCallStates>;
}

function createMcpServer({ engine, identity, desk, states }: Shared, era: 'legacy' | 'modern'): McpServer {
  const { toolset } = engine.settings;
  const listFollowsTools = LIST_FOLLOWS_TOOLS[toolset];
  const connection = new McpServer(
    { ...identity, title: 'Claude Code' },
    {
      capabilities: { tools: { listChanged: listFollowsTools } },
      instructions: INSTRUCTIONS[toolset],
      requestState: states,
    },
  );
  // The low-level server: `McpServer` would answer a bad argument in its own words and convert schemas at every start.
  const { server } = connection;
  const pushedForms = new PushedForms(server, desk);
  server.setRequestHandler('tools/list', async () => ({ tools: await listTools(engine) }));
  server.setRequestHandler('tools/call', async (request, ctx) => {
    const tools = await loadTools(toolset);
    const tool = tools.find(({ name }) => name === request.params.name);
    if (!tool) {
      const outcome = 'INVALID_ARGUMENT';
      engine.audit.record({ kind: 'tool_call', who: 'caller', what: request.params.name.slice(0, 100), outcome });
      return unknownTool(request.params.name, tools);
    }
    const forms = era === 'modern' ? new CallForms(engine, desk, states, ctx) : undefined;
    // Whoever called last is whose user is asked: before the first call there is no session that could ask.
    engine.presentWith(forms ? { available: forms.available, present: () => undefined } : pushedForms);
    const context: ToolContext = { engine, signal: ctx.mcpReq.signal, progress: progressTo(ctx), forms };
    return callTool(tool, request.params.arguments, context);
  });
  if (listFollowsTools) {
    server.onclose = engine.toolsChanged.subscribe(() => {
      // Before the handshake and on a probe there is nobody to tell.
      server.sendToolListChanged().catch(() => undefined);
    });
  }
  return connection;
}

let toolsets: Promise<Readonly<Record<Settings['toolset'], readonly Tool[]>>> | undefined;

/** Apart from the start: the first answer of a server is its list, and that needs neither handlers nor schemas. */
export async function loadTools(toolset: Settings['toolset']): Promise<readonly Tool[]> {
  toolsets ??= import('./toolsets.ts').then(({ TOOLSETS }) => TOOLSETS);
  return (await toolsets)[toolset];
}

async function listTools({ settings: { toolset }, tools: knownTools }: Engine): Promise<ListedTool[]> {
  const listing = TOOL_LISTING[toolset];
  if (knownTools === undefined || !LIST_FOLLOWS_TOOLS[toolset]) return [...listing];
  const tools = await loadTools(toolset);
  return listing.map((listed, index) => ({ ...listed, description: tools[index]?.describe(knownTools) }));
}

function progressTo({ mcpReq }: ServerContext): ToolContext['progress'] {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let progress = 0;
  return (message) => {
    progress++;
    // A client that has gone needs no progress.
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

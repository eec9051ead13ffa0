import { McpServer, type ServerContext, type Tool as ListedTool } from '@modelcontextprotocol/server';
import type { Engine } from '../engine/engine.ts';
import { callTool } from './call-tool.ts';
import type { Tool, ToolContext } from './define-tool.ts';
import { CallForms, createCallStates } from './forms/call-forms.ts';
import { FormDesk } from './forms/form-desk.ts';
import { PushedForms } from './forms/pushed-forms.ts';
import { INSTRUCTIONS } from './instructions.ts';
import { listedSchema } from './list-schema.ts';
import { TOOLSETS } from './toolsets.ts';

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

interface Shared {
  engine: Engine;
  identity: ServerIdentity;
  desk: FormDesk;
  states: ReturnType<typeof createCallStates>;
}

function createMcpServer({ engine, identity, desk, states }: Shared, era: 'legacy' | 'modern'): McpServer {
  const tools = TOOLSETS[engine.settings.toolset];
  const connection = new McpServer(
    { ...identity, title: 'Claude Code' },
    {
      capabilities: { tools: { listChanged: true } },
      instructions: INSTRUCTIONS[engine.settings.toolset],
      requestState: states,
    },
  );
  // The low-level server: `McpServer` would answer a bad argument in its own words and convert schemas at every start.
  const { server } = connection;
  const pushedForms = new PushedForms(server, desk);
  server.setRequestHandler('tools/list', () => ({ tools: tools.map((tool) => listTool(tool, engine)) }));
  server.setRequestHandler('tools/call', async (request, ctx) => {
    const tool = tools.find(({ name }) => name === request.params.name);
    if (!tool) return unknownTool(request.params.name, tools);
    const forms = era === 'modern' ? new CallForms(engine, desk, states, ctx) : undefined;
    // Whoever called last is whose user is asked: before the first call there is no session that could ask.
    engine.presentWith(forms ? { available: forms.available, present: () => undefined } : pushedForms);
    const context: ToolContext = { engine, signal: ctx.mcpReq.signal, progress: progressTo(ctx), forms };
    return callTool(tool, request.params.arguments, context);
  });
  const unsubscribe = engine.toolsChanged.subscribe(() => {
    // Before the handshake and on a probe there is nobody to tell.
    server.sendToolListChanged().catch(() => undefined);
  });
  server.onclose = unsubscribe;
  return connection;
}

function listTool(tool: Tool, engine: Engine): ListedTool {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.describe(engine.tools),
    inputSchema: listedSchema(tool.input()),
    outputSchema: listedSchema(tool.output()),
    annotations: { title: tool.title, ...tool.annotations },
  };
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

import type { McpServer } from '@modelcontextprotocol/server';
import type { Settings } from '../../../config/load-settings.ts';
import { OTHERS_ACCESS, type Principal } from '../../../engine/rules/access.ts';
import { EngineClient } from '../../../engine/client.ts';
import type { Engine } from '../../../engine/engine.ts';
import type { Rules } from '../../../engine/rules/rules.ts';
import type { ProtocolEra } from '../../../schema/enums.ts';
import { createCallStates, ModernClient } from '../../../mcp/forms/call-forms.ts';
import type { CallOnce } from '../../../mcp/call-tool.ts';
import type { Observer } from '../../../mcp/observe.ts';
import type { Outbox } from '../../../mcp/outbox.ts';
import { watchResources, type UpdateListener } from '../../../mcp/resource-updates.ts';
import { serverFactory, type ServerIdentity } from '../../../mcp/server.ts';

export interface McpConnection {
  readonly era: ProtocolEra;
  readonly principal: Principal;
  readonly toolset: Settings['toolset'];
  /** Who forms are shown to in the modern era, where a connection lasts one request but its client does not. */
  readonly client?: ModernClient;
  /** What its principal has not read yet. */
  readonly outbox?: Outbox;
}

/** Creates the MCP servers for HTTP: one per older session, one per request of a modern client. */
export interface McpServers {
  open(connection: McpConnection): McpServer;
  newClient(principal: Principal, toolset: Settings['toolset']): ModernClient;
  /** That client has not called for a long time. */
  forget(client: ModernClient): void;
  onToolsChanged(listener: () => void): () => void;
  /** Reports changes to what this principal can read. */
  watchResources(principal: Principal, listener: UpdateListener): () => void;
}

/** HTTP callers name the directory to work in: there is no default on this machine. */
export function mcpServersOver(
  engine: Engine,
  identity: ServerIdentity,
  stateKey: string,
  observe?: Observer,
  once?: CallOnce,
): McpServers {
  const states = createCallStates(Buffer.from(stateKey, 'base64url'));
  const rulesOf = (toolset: Settings['toolset']): Rules =>
    engine.rulesFor({ settings: { ...engine.settings, toolset }, cwd: undefined, access: OTHERS_ACCESS });
  const rules = { compact: rulesOf('compact'), explicit: rulesOf('explicit') };
  return {
    open({ era, principal, toolset, client, outbox }) {
      const options = { rules: rules[toolset], states, takesRoots: false, observe, once, outbox };
      return serverFactory(engine, identity, principal, options)({ era, ...(client && { client }) });
    },
    newClient: (principal, toolset) => new ModernClient(principal, rules[toolset]),
    forget: (client) => engine.approvals.disconnect(client),
    watchResources: (principal, listener) =>
      watchResources(new EngineClient(engine, { principal, showsForms: false }), listener),
    onToolsChanged: (listener) =>
      engine.stream.subscribe(({ kind }) => {
        if (kind === 'tools') listener();
      }),
  };
}

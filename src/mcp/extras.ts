import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, type McpServer } from '@modelcontextprotocol/server';
import type { EngineClient } from '../engine/client.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { ProtocolEra } from '../schema/enums.ts';
import { observed, type Observer } from './observe.ts';
import type { Outbox } from './outbox.ts';
import { watchResources } from './resource-updates.ts';

export const EXTRA_CAPABILITIES = { resources: { subscribe: true, listChanged: true }, prompts: {} } as const;

/** A client that subscribes to more than this should read a list instead. */
const MAX_SUBSCRIPTIONS = 1_000;

/**
 * Resources and prompts, for clients that show them. Their handlers are loaded with the first request; older clients
 * get updates for what they subscribed to, modern ones by the filter of their subscription.
 */
export function offerExtras(
  { server }: McpServer,
  engine: EngineClient,
  era: ProtocolEra,
  observe: Observer | undefined,
  outbox: Outbox | undefined,
): () => void {
  const resources = () => import('./resources.ts');
  const prompts = () => import('./prompts.ts');
  const subscribed = new Set<string>();
  let unwatch: (() => void) | undefined;
  const watch = (): void => {
    unwatch ??= watchResources(engine, {
      updated: (uri) => {
        if (era === 'modern' || subscribed.has(uri)) server.sendResourceUpdated({ uri }).catch(() => undefined);
      },
      // Before the handshake and on a probe there is no one to notify.
      listChanged: () => void server.sendResourceListChanged().catch(() => undefined),
    });
  };
  // Only the transport knows what a modern client listens for.
  if (era === 'modern') watch();
  server.setRequestHandler('resources/list', () =>
    observed(observe, { method: 'resources/list' }, async () => {
      watch();
      const { listResources } = await resources();
      await engine.stored();
      return listResources((await engine.list()).sessions);
    }),
  );
  server.setRequestHandler('resources/templates/list', () =>
    observed(observe, { method: 'resources/templates/list' }, async () => (await resources()).listResourceTemplates()),
  );
  server.setRequestHandler('resources/read', ({ params: { uri } }, { mcpReq: { signal } }) =>
    observed(observe, { method: 'resources/read' }, async () => {
      watch();
      const turn = outbox?.answer();
      try {
        const { readResource } = await resources();
        await engine.stored();
        await turn?.take(signal);
        const read = await readResource(engine, uri);
        if (read) return read;
      } catch (error) {
        if (!(error instanceof DomainError)) throw error;
        if (error.code !== 'SESSION_NOT_FOUND') throw new ProtocolError(ProtocolErrorCode.InternalError, error.message);
      } finally {
        turn?.end();
      }
      throw new ResourceNotFoundError(uri.slice(0, 300), `There is no resource ${uri.slice(0, 300)}.`);
    }),
  );
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
    if (subscribed.size >= MAX_SUBSCRIPTIONS)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Too many subscriptions on this connection.');
    watch();
    subscribed.add(uri);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
    subscribed.delete(uri);
    return {};
  });
  server.setRequestHandler('prompts/list', () =>
    observed(observe, { method: 'prompts/list' }, async () => (await prompts()).listPrompts()),
  );
  server.setRequestHandler('prompts/get', ({ params: { name, arguments: given = {} } }) =>
    observed(observe, { method: 'prompts/get' }, async () => {
      const { getPrompt } = await prompts();
      try {
        return getPrompt(name, given, engine.toolset);
      } catch (error) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, messageOf(error));
      }
    }),
  );
  return () => unwatch?.();
}

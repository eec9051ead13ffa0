import type { EngineClient } from '../../engine/engine-client.ts';
import type { DrivenSession, Order, OrderOutcomes } from '../../engine/elsewhere.ts';
import type { Session } from '../../engine/session.ts';

/** Carries out an order, as the principal that gave it. */
export async function carryOut(
  client: EngineClient,
  sessionId: string,
  order: Order,
): Promise<OrderOutcomes[Order['kind']]> {
  switch (order.kind) {
    case 'start':
      return driven(await client.start({ ...order.request, id: sessionId }));
    case 'reply':
      return driven(await client.reply({ ...order.request, sessionId }));
    case 'respond':
      return driven(await client.respond(sessionId, order.requestId, order.answer));
    case 'form':
      return driven(await client.answerForm(sessionId, order.requestId, order.answer));
    case 'interrupt':
      return client.interrupt(sessionId);
    case 'cancel':
      return client.cancel(sessionId);
    case 'rewind':
      return client.rewind(sessionId, order.toUserMessage, order.dryRun);
    case 'diff':
      return client.diff(sessionId, order.page);
    case 'apply':
      return client.apply(sessionId, order.options);
    case 'discard':
      return client.discard(sessionId, order.options);
  }
}

function driven(session: Session): DrivenSession {
  return { sessionId: session.id, warnings: session.warnings.splice(0) };
}

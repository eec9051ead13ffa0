/** Sends one answer over HTTP. */

import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { sendError, sendJson } from './http-response.ts';
import { encodeEvent, eventsOf, messageOf, type Message, type StreamEvent } from './message-events.ts';
import type { ModelRequest } from './model-request.ts';
import type { MessageReply } from './reply.ts';
import type { Answer, BrokenAnswer } from './step.ts';

/** Resolves to the message that was sent completely; to undefined after an error, or if the client disconnected. */
export async function deliver(
  answer: Answer,
  request: ModelRequest,
  response: ServerResponse,
): Promise<Message | undefined> {
  if (response.destroyed) return undefined;
  switch (answer.kind) {
    case 'message':
      return deliverMessage(answer, request, response);
    case 'http-error':
      sendError(response, request.id, answer.status, answer.details);
      return undefined;
    case 'hang':
      await gone(response);
      return undefined;
    case 'broken':
      await deliverPart(answer, request, response);
      return undefined;
    case 'held':
      answer.gate.arrive(request);
      await Promise.race([answer.gate.released, gone(response)]);
      return deliver(answer.answer, request, response);
  }
}

async function deliverMessage(
  reply: MessageReply,
  request: ModelRequest,
  response: ServerResponse,
): Promise<Message | undefined> {
  const { delayMs, chunkCount, chunkEveryMs } = reply.parts;
  await pause(delayMs, response);
  if (response.destroyed) return undefined;

  const message = messageOf(reply, request.model);
  if (!request.stream) {
    sendJson(response, 200, message, { 'request-id': request.id });
    return message;
  }
  startStream(response, request.id);
  const events = eventsOf(message, chunkCount);
  if (chunkCount <= 1) {
    response.end(events.map(encodeEvent).join(''));
    return message;
  }
  await writeOneByOne(response, events, chunkEveryMs);
  if (response.destroyed) return undefined;
  response.end();
  return message;
}

async function deliverPart(
  { message: reply, afterEvents, ending }: BrokenAnswer,
  request: ModelRequest,
  response: ServerResponse,
): Promise<void> {
  await pause(reply.parts.delayMs, response);
  if (response.destroyed) return;

  const events = eventsOf(messageOf(reply, request.model), reply.parts.chunkCount);
  startStream(response, request.id);
  const part = events.slice(0, afterEvents ?? Math.ceil(events.length / 2));
  // destroy() drops what is still buffered: the client sees the part only once it went out.
  await new Promise((sent) => response.write(part.map(encodeEvent).join(''), sent));
  if (ending === 'stall') await gone(response);
  response.destroy();
}

function startStream(response: ServerResponse, requestId: string): void {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    'request-id': requestId,
  });
}

async function writeOneByOne(response: ServerResponse, events: readonly StreamEvent[], everyMs: number): Promise<void> {
  for (const event of events) {
    if (response.destroyed) return;
    response.write(encodeEvent(event));
    if (event.type !== 'content_block_delta') continue;
    await (everyMs > 0 ? pause(everyMs, response) : nextTurn());
  }
}

/** Ends early if the client disconnects. */
async function pause(ms: number, response: ServerResponse): Promise<void> {
  if (ms <= 0 || response.destroyed) return;
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  response.once('close', abort);
  // A rejection means that the client disconnected: callers check `destroyed`.
  await sleep(ms, undefined, { signal: stop.signal }).catch(() => undefined);
  response.off('close', abort);
}

async function gone(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((resolve) => response.once('close', resolve));
}

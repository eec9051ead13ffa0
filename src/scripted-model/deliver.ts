/** Sends one answer over HTTP. */

import { randomUUID } from 'node:crypto';
import type { ServerResponse, OutgoingHttpHeaders } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ModelRequest } from './model-request.ts';
import type { MessageReply, HttpErrorDetails, Block, StopReason, Usage } from './reply.ts';
import type { Answer, BrokenAnswer } from './script.ts';

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

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function sendError(
  response: ServerResponse,
  requestId: string,
  status: number,
  { type, message, retryAfter }: HttpErrorDetails = {},
): void {
  const error = {
    type: type ?? ERROR_TYPES[status] ?? 'api_error',
    message: message ?? `scripted error ${status}`,
  };
  const headers: OutgoingHttpHeaders = { 'request-id': requestId };
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  sendJson(response, status, { type: 'error', error, request_id: requestId }, headers);
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: Readonly<Record<string, unknown>>;
    };

export interface Message {
  readonly id: string;
  readonly type: 'message';
  readonly role: 'assistant';
  readonly model: string;
  readonly content: readonly ContentBlock[];
  readonly stop_reason: StopReason;
  readonly stop_sequence: null;
  readonly usage: Usage;
}

export interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

function messageOf({ parts }: MessageReply, askedModel: string): Message {
  const callsTools = parts.blocks.some((block) => block.type === 'tool_use');
  return {
    id: `msg_${uniqueId()}`,
    type: 'message',
    role: 'assistant',
    model: parts.model ?? askedModel,
    content: parts.blocks.map(contentBlock),
    stop_reason: parts.stopReason ?? (callsTools ? 'tool_use' : 'end_turn'),
    stop_sequence: null,
    usage: parts.usage,
  };
}

function eventsOf(message: Message, chunkCount: number): StreamEvent[] {
  const { usage, stop_reason, stop_sequence } = message;
  const opening = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  return [
    { type: 'message_start', message: opening },
    ...message.content.flatMap((block, index) => blockEvents(block, index, chunkCount)),
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
    { type: 'message_stop' },
  ];
}

function encodeEvent(event: StreamEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function blockEvents(block: ContentBlock, index: number, chunkCount: number): StreamEvent[] {
  return [
    { type: 'content_block_start', index, content_block: emptied(block) },
    ...deltas(block, chunkCount).map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

function emptied(block: ContentBlock): ContentBlock {
  switch (block.type) {
    case 'text':
      return { ...block, text: '' };
    case 'thinking':
      return { ...block, thinking: '', signature: '' };
    case 'tool_use':
      return { ...block, input: {} };
  }
}

function deltas(block: ContentBlock, chunkCount: number): Record<string, string>[] {
  switch (block.type) {
    case 'text':
      return split(block.text, chunkCount).map((text) => ({ type: 'text_delta', text }));
    case 'thinking':
      return [
        ...split(block.thinking, chunkCount).map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: block.signature },
      ];
    case 'tool_use':
      return [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }];
  }
}

function contentBlock(block: Block): ContentBlock {
  switch (block.type) {
    case 'text':
      return block;
    case 'thinking':
      return { ...block, signature: `sig_${uniqueId()}` };
    case 'tool_use':
      return { type: 'tool_use', id: `toolu_${uniqueId()}`, name: block.name, input: block.input };
  }
}

/** By code points: a delta with half a surrogate pair is not valid UTF-8. */
function split(whole: string, count: number): string[] {
  const points = Array.from(whole);
  const size = Math.max(1, Math.ceil(points.length / Math.max(1, count)));
  const pieces: string[] = [];
  for (let start = 0; start < points.length; start += size) pieces.push(points.slice(start, start + size).join(''));
  return pieces;
}

/** Unique beyond this server: a resumed transcript holds ids of the one before. */
function uniqueId(): string {
  return randomUUID().replaceAll('-', '');
}

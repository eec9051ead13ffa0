import type { ServerResponse } from 'node:http';
import type { Outbox } from '../../mcp/outbox.ts';
import type { EventStream, RouteResponse, ServerSentEvent } from './route.ts';

/** For everything but the dashboard's files, which have their own policy. */
const API_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

const KEEP_ALIVE_MS = 15_000;
/** A reader that reads nothing for this long is dropped, and can resume with the id of its last event. */
const STALLED_MS = 30_000;
/** Smaller responses are bounded by the number of requests. */
const COUNTED_BYTES = 16 * 1024;

type Whole = Exclude<RouteResponse, { events: unknown }>;

/** Sends a complete response. Does nothing if one has already started. */
export function sendWhole(
  response: ServerResponse,
  answer: Whole,
  { withBody = true, outbox }: { withBody?: boolean; outbox?: Outbox | undefined } = {},
): void {
  if (response.headersSent || response.writableEnded) return;
  const [contentType, text] = contentOf(answer);
  const body = Buffer.from(text);
  response.writeHead(answer.status, {
    ...API_HEADERS,
    ...(contentType !== undefined && { 'content-type': contentType }),
    ...(answer.status !== 204 && { 'content-length': body.length }),
    ...answer.headers,
  });
  if (!withBody || answer.status === 204) return void response.end();
  if (outbox && body.length > COUNTED_BYTES) {
    endWhenStalled(response);
    const read = outbox.add(body.length);
    response.once('finish', read).once('close', read);
  }
  response.end(body);
}

function contentOf(answer: Whole): [contentType: string | undefined, body: string] {
  if ('json' in answer) return ['application/json; charset=utf-8', JSON.stringify(answer.json)];
  if ('text' in answer) return [answer.contentType, answer.text];
  return [undefined, ''];
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store, no-transform',
  // nginx would hold events back until its buffer is full.
  'x-accel-buffering': 'no',
};

/** Writes to a response no faster than its reader reads. */
class PacedWriter {
  readonly #response: ServerResponse;
  readonly #closed = new AbortController();

  constructor(response: ServerResponse) {
    this.#response = response;
    if (response.destroyed || response.writableEnded) this.#closed.abort();
    else response.once('close', () => this.#closed.abort());
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Resolves when more can be written, or never will be. */
  async write(chunk: string | Uint8Array): Promise<void> {
    const response = this.#response;
    if (this.closed.aborted || response.writableEnded || response.write(chunk)) return;
    await new Promise<void>((resolve) => {
      const stalled = setTimeout(() => response.destroy(), STALLED_MS).unref();
      const done = (): void => {
        clearTimeout(stalled);
        response.off('drain', done);
        this.closed.removeEventListener('abort', done);
        resolve();
      };
      response.once('drain', done);
      this.closed.addEventListener('abort', done, { once: true });
    });
  }
}

/** Sends events until the route is done or the client has disconnected. */
export async function sendEvents(
  response: ServerResponse,
  { events, headers }: Extract<RouteResponse, { events: unknown }>,
  outbox: Outbox,
): Promise<void> {
  response.writeHead(200, { ...API_HEADERS, ...STREAM_HEADERS, ...headers });
  response.flushHeaders();
  const writer = new PacedWriter(response);
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain && !response.writableEnded) response.write(': keep-alive\n\n');
  }, KEEP_ALIVE_MS).unref();
  const stream: EventStream = {
    closed: writer.closed,
    async send(frames) {
      const read = outbox.add(frames.length);
      await writer.write(frames);
      read();
    },
    async room() {
      const turn = outbox.answer();
      await turn.take(writer.closed);
      turn.end();
    },
  };
  try {
    await events(stream);
  } finally {
    clearInterval(keepAlive);
    response.end();
  }
}

export function frameOf({ id, event, data }: ServerSentEvent): Buffer {
  const lines = [
    ...(id === undefined ? [] : [`id: ${oneLine(id)}`]),
    ...(event === undefined ? [] : [`event: ${oneLine(event)}`]),
    `data: ${JSON.stringify(data)}`,
  ];
  return Buffer.from(`${lines.join('\n')}\n\n`);
}

function oneLine(text: string): string {
  return text.replace(/[\r\n\0]/g, ' ');
}

/**
 * Sends the MCP library's response. The library queues what it has to send without a bound; so its queue is emptied at
 * once, and what the reader has not taken is counted.
 */
export async function sendWebResponse(response: ServerResponse, answer: Response, outbox: Outbox): Promise<void> {
  for (const [name, value] of Object.entries(API_HEADERS)) response.setHeader(name, value);
  for (const [name, value] of answer.headers) if (name !== 'connection') response.setHeader(name, value);
  response.writeHead(answer.status);
  if (!answer.body) return void response.end();
  response.flushHeaders();
  endWhenStalled(response);
  const reader = answer.body.getReader();
  const unread = new Set<() => void>();
  const closed = (): void => {
    for (const read of unread) read();
    reader.cancel().catch(() => undefined);
  };
  response.once('close', closed);
  if (response.destroyed) closed();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const bytes = piece.value as Uint8Array;
      const read = outbox.add(bytes.length);
      unread.add(read);
      response.write(bytes, () => {
        read();
        unread.delete(read);
      });
    }
  } finally {
    if (!response.writableEnded) response.end();
  }
  if (response.writableFinished || response.destroyed) return;
  await new Promise<void>((resolve) => response.once('finish', resolve).once('close', resolve));
}

/** A reader that makes no progress with what is there for it is dropped. An idle stream is not. */
function endWhenStalled(response: ServerResponse): void {
  response.setTimeout(STALLED_MS, () => {
    if (response.writableLength > 0) response.destroy();
  });
}

import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { TOKEN_VARIABLE } from '../../config/child-environment.ts';
import { readHubRecord } from '../../config/hub-record.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { isLoopback } from '../../config/setting-kinds.ts';
import { SettingsError } from '../../config/bad-input.ts';
import { DomainError } from '../../errors/errors.ts';
import type { ApiError } from '../../schema/api.ts';
import type { StreamMessages } from '../../schema/api-events.ts';
import { attachToHub, HubRefused, HubUnavailable } from '../../transports/attach/connect-hub.ts';
import { attachRequest, type HubClientContext } from '../serve/find-hub.ts';

export interface OpenHubOptions {
  /** As the user would type it. */
  readonly command: string;
  readonly settings: Settings;
  readonly source: HubClientContext;
  /** What `--url` says. */
  readonly url: string | undefined;
  readonly isInteractive: boolean;
}

/**
 * The hub of this user over its socket, or any hub with a token. Over the socket the hub itself finds out whether this
 * process runs inside a session and at a terminal; what is refused here is only refused sooner.
 */
export function openHub(options: OpenHubOptions): { readonly api: HubApi; readonly hasToken: boolean } {
  const address = addressOf(options);
  return { api: new HubApi(address), hasToken: address.kind === 'url' };
}

function addressOf({ command, settings, source, url, isInteractive }: OpenHubOptions): HubAddress {
  const token = source.env[TOKEN_VARIABLE]?.trim();
  if (url !== undefined && !token)
    throw new SettingsError(`--url needs a token in ${TOKEN_VARIABLE}; "token create" on that machine makes one.`);
  if (url !== undefined && token) return addressOfUrl(url, token);
  const { stateDir } = settings;
  if (!token && runsBelowSession(settings))
    throw new DomainError('PERMISSION_DENIED', refusedBelowSession(`claude-code-mcp ${command}`));
  const running = readHubRecord(stateDir);
  if (!running) throw new DomainError('UNAVAILABLE', 'No hub is running. Start one with: claude-code-mcp hub start');
  if (token) return { kind: 'url', url: running.url, token };
  const request = { ...attachRequest(settings, source), kind: 'terminal' as const, isInteractive };
  return {
    kind: 'socket',
    async connect() {
      // After a restart it may be elsewhere.
      const record = readHubRecord(stateDir);
      if (!record) throw new HubUnreachable('it is not running');
      try {
        return { socket: (await attachToHub(record, stateDir, request)).socket, url: record.url };
      } catch (error) {
        if (error instanceof HubRefused)
          throw new DomainError('PERMISSION_DENIED', `The hub refused: ${error.message}`);
        throw error instanceof HubUnavailable ? new HubUnreachable(error.message) : error;
      }
    },
  };
}

/** How requests reach the hub: over its socket as this user, or over the network with a token. */
type HubAddress =
  | { readonly kind: 'socket'; connect(): Promise<{ readonly socket: Socket; readonly url: string }> }
  | { readonly kind: 'url'; readonly url: string; readonly token: string };

export type StreamMessage = {
  [Name in keyof StreamMessages]: { readonly name: Name; readonly data: StreamMessages[Name] };
}[keyof StreamMessages];

/** The hub has refused. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: number;
  readonly body: Partial<ApiError> & Readonly<Record<string, unknown>>;

  constructor(status: number, body: ApiFailure['body']) {
    super(body.error?.message ?? `The hub answered with status ${String(status)}.`);
    this.status = status;
    this.body = body;
  }
}

/** The hub cannot be reached, or went away. It may come back. */
export class HubUnreachable extends Error {
  override readonly name = 'HubUnreachable';
}

interface Body {
  readonly content: string;
  readonly key: string;
}

const RETRY_FOR_MS = 15_000;
const RETRY_EVERY_MS = 300;

/** `/api/v1` as a command uses it. */
export class HubApi {
  readonly #address: HubAddress;

  constructor(address: HubAddress) {
    this.#address = address;
  }

  get<Answer>(path: string, query: Readonly<Record<string, string | number | undefined>> = {}): Promise<Answer> {
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    );
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
    return this.#answer<Answer>('GET', path + search);
  }

  /**
   * Sent again when the hub goes away before it has answered, for as long as a restart may take: what is sent twice with
   * the same key is done once.
   */
  async post<Answer>(path: string, body: object): Promise<Answer> {
    const key = randomUUID();
    for (const deadline = Date.now() + RETRY_FOR_MS; ;) {
      try {
        return await this.#answer<Answer>('POST', path, { content: JSON.stringify(body), key });
      } catch (error) {
        if (!(error instanceof HubUnreachable) || Date.now() > deadline) throw error;
        await pause(RETRY_EVERY_MS);
      }
    }
  }

  async delete<Answer>(path: string): Promise<Answer> {
    return this.#answer<Answer>('DELETE', path);
  }

  /** What happens from now on, until the connection ends. */
  async *stream(path: string, signal: AbortSignal): AsyncGenerator<StreamMessage> {
    let rest = '';
    try {
      const response = await this.#request('GET', path, undefined, signal);
      if (response.statusCode !== 200) throw await failureOf(response);
      response.setEncoding('utf8');
      for await (const piece of response as AsyncIterable<string>) {
        const frames = (rest + piece).split('\n\n');
        rest = frames.pop() ?? '';
        for (const frame of frames) {
          const message = messageIn(frame);
          if (message) yield message;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      throw error instanceof ApiFailure ? error : new HubUnreachable(wordsOf(error));
    }
  }

  async #answer<Answer>(method: string, path: string, body?: Body): Promise<Answer> {
    const response = await this.#request(method, path, body);
    if ((response.statusCode ?? 500) >= 300) throw await failureOf(response);
    return (await jsonOf(response)) as Answer;
  }

  async #request(method: string, path: string, body?: Body, signal?: AbortSignal): Promise<IncomingMessage> {
    const address = this.#address;
    const { socket, url: hub } = address.kind === 'socket' ? await address.connect() : { url: address.url };
    const url = new URL(path, hub);
    // The socket is local: what the hub speaks there is not encrypted, whatever its address says.
    if (socket) url.protocol = 'http:';
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise<IncomingMessage>((resolve, reject) => {
      const request = send(url, {
        method,
        headers: {
          host: new URL(hub).host,
          ...(address.kind === 'url' && { authorization: `Bearer ${address.token}` }),
          ...(body && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body.content),
            'idempotency-key': body.key,
          }),
        },
        // An agent would open a connection of its own.
        ...(socket ? { createConnection: () => socket } : { agent: false }),
        ...(signal && { signal }),
      });
      // A connection that was handed over is paused.
      request.once('socket', (connection) => connection.resume());
      request.once('response', resolve);
      request.once('error', (error) => reject(new HubUnreachable(wordsOf(error))));
      request.end(body?.content);
    });
  }
}

/** The hub that `--url` names. A token must not travel in the clear. */
export function addressOfUrl(url: string, token: string): HubAddress {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || (parsed.protocol !== 'https:' && parsed.protocol !== 'http:'))
    throw new SettingsError(`--url takes the address of a hub, such as https://hub.example.org.`);
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  if (parsed.protocol === 'http:' && host !== 'localhost' && !isLoopback(host))
    throw new SettingsError('--url must be https for another machine: the token would travel in the clear.');
  return { kind: 'url', url: parsed.origin, token };
}

async function failureOf(response: IncomingMessage): Promise<ApiFailure> {
  const body = await jsonOf(response).catch(() => ({}));
  return new ApiFailure(response.statusCode ?? 0, body as ApiFailure['body']);
}

async function jsonOf(response: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of response as AsyncIterable<Buffer>) pieces.push(piece);
  } catch (error) {
    throw new HubUnreachable(wordsOf(error));
  }
  const text = Buffer.concat(pieces).toString('utf8');
  try {
    return text === '' ? {} : (JSON.parse(text) as unknown);
  } catch {
    throw new HubUnreachable('what answers there is not a hub');
  }
}

/** The hub writes one event per frame, with its data on one line. */
function messageIn(frame: string): StreamMessage | undefined {
  const field = (name: string): string | undefined =>
    frame
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const name = field('event');
  const data = field('data');
  return name === undefined || data === undefined
    ? undefined
    : ({ name, data: JSON.parse(data) as unknown } as StreamMessage);
}

function wordsOf(error: unknown): string {
  const { code, message, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code === 'ECONNREFUSED')
    return address === undefined ? 'nothing listens there' : `nothing listens at ${address}, port ${String(port)}`;
  return message.includes('wrong version number') ? 'it does not speak TLS; try http:// in --url' : message;
}

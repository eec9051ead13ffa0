import { randomBytes } from 'node:crypto';
import type {
  JSONRPCMessage,
  MessageExtraInfo,
  Transport,
  TransportSendOptions,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';

export interface Subscription {
  readonly uri: string;
  /** False if the client no longer wants to hear about it. */
  readonly isWanted: boolean;
}

const SUBSCRIPTIONS = new Map([
  ['resources/subscribe', true],
  ['resources/unsubscribe', false],
]);

/**
 * The library's transport for one older session, with two fixes (2.4.0). Its request ids start at 0 again after a
 * restart, so that a late answer to an old question was taken for the answer to a new one; here they are unique. And it
 * drops requests to the client while no GET stream is open; here they use a call in progress, or fail at once.
 */
export class SessionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage, extra?: MessageExtraInfo) => void;
  readonly #inner: WebStandardStreamableHTTPServerTransport;
  readonly #prefix = `${randomBytes(9).toString('base64url')}-`;
  /** Unanswered client requests whose response is still being read; oldest first. */
  readonly #calls = new Set<string | number>();
  readonly #subscribing = new Map<string | number, Subscription>();
  hasStream = false;
  /** Told what the server has agreed to, before the client is. */
  onsubscription?: (subscription: Subscription) => Promise<void>;

  constructor(inner: WebStandardStreamableHTTPServerTransport) {
    this.#inner = inner;
    inner.onclose = () => this.onclose?.();
    inner.onerror = (error) => this.onerror?.(error);
    inner.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) => this.#receive(message, extra);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setSupportedProtocolVersions(versions: string[]): void {
    this.#inner.setSupportedProtocolVersions(versions);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** The client no longer reads the responses to these requests; their answers are lost. */
  stoppedReading(ids: readonly (string | number)[]): void {
    for (const id of ids) {
      this.#calls.delete(id);
      this.#subscribing.delete(id);
    }
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!('method' in message)) {
      if (message.id !== undefined) {
        this.#calls.delete(message.id);
        const subscription = this.#subscribing.get(message.id);
        this.#subscribing.delete(message.id);
        if (subscription && 'result' in message) await this.onsubscription?.(subscription);
      }
      return this.#inner.send(message);
    }
    const isRequest = 'id' in message;
    const ownId = 'id' in message ? { id: this.#prefix + String(message.id) } : {};
    const outgoing = { ...this.#withOwnIds(message), ...ownId } as JSONRPCMessage;
    const related = options?.relatedRequestId;
    if (related === undefined && this.hasStream) return this.#inner.send(outgoing);
    const call = related ?? [...this.#calls].at(-1);
    if (call !== undefined) return this.#inner.send(outgoing, { relatedRequestId: call });
    if (isRequest) throw new Error('the client has no stream open on which it could be asked');
  }

  #receive(message: JSONRPCMessage, extra: MessageExtraInfo | undefined): void {
    if ('method' in message) {
      if ('id' in message) {
        this.#calls.add(message.id);
        const uri = message.params?.['uri'];
        const isWanted = SUBSCRIPTIONS.get(message.method);
        if (isWanted !== undefined && typeof uri === 'string') this.#subscribing.set(message.id, { uri, isWanted });
      }
      this.onmessage?.(message, extra);
      if (message.method === 'notifications/cancelled') this.#cancelled(message.params);
      return;
    }
    const id = String(message.id);
    // Asked by an earlier incarnation of the hub, or never.
    if (!id.startsWith(this.#prefix)) return;
    this.onmessage?.({ ...message, id: Number(id.slice(this.#prefix.length)) }, extra);
  }

  /** The library sends no response to a cancelled call, and would leave it open. */
  #cancelled(params: Record<string, unknown> | undefined): void {
    const id = params?.['requestId'];
    if ((typeof id !== 'string' && typeof id !== 'number') || !this.#calls.delete(id)) return;
    this.#inner.closeSSEStream(id);
  }

  /** A withdrawn form names the request by its id. */
  #withOwnIds<M extends JSONRPCMessage & { method: string }>(message: M): M {
    if (message.method !== 'notifications/cancelled' || !('params' in message)) return message;
    const requestId: unknown = (message.params as { requestId?: unknown } | undefined)?.requestId;
    if (typeof requestId !== 'number') return message;
    return { ...message, params: { ...message.params, requestId: this.#prefix + String(requestId) } };
  }
}

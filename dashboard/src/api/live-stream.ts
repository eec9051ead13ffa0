import { signal } from '@preact/signals';
import type { StreamMessages } from '../../../src/schema/api-events.ts';
import { apiUrl, credentials } from './client.ts';
import { EventParser, type ServerSentEvent } from './server-sent-events.ts';
import { signedOut } from './sign-in.ts';

export type Connection =
  | { readonly state: 'connecting' }
  /** Connected, and catching up on what happened in the meantime. */
  | { readonly state: 'catching up'; readonly since: number }
  | { readonly state: 'connected' }
  | { readonly state: 'offline'; readonly since: number };

export type StreamMessage = {
  [Name in keyof StreamMessages]: { readonly name: Name; readonly data: StreamMessages[Name] };
}[keyof StreamMessages];

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 15_000;
/** The hub sends a comment far more often than that. */
const SILENCE_MS = 60_000;
/** Not a break: it resumes at once, or when it may. */
const SWITCH = 'switch';

/**
 * The stream of everything, read with `fetch` because an EventSource sends no headers and gives up after any response
 * but 200. It resumes from the last position after every break, until it is stopped.
 */
export class LiveStream {
  readonly connection = signal<Connection>({ state: 'connecting' });
  readonly #onMessages: (messages: StreamMessage[]) => void;
  #eventsOf: string | undefined;
  #position: string | undefined;
  #offlineSince: number | undefined;
  #attempt: AbortController | undefined;
  #pause: { readonly end: () => void } | undefined;
  /** Resolves when it may resume; set while the tab is hidden. */
  #rest: { readonly over: Promise<void>; readonly end: () => void } | undefined;
  #run = 0;

  constructor(onMessages: (messages: StreamMessage[]) => void) {
    this.#onMessages = onMessages;
  }

  start(): void {
    const run = ++this.#run;
    void this.#keepReading(run);
  }

  stop(): void {
    this.#run++;
    this.#position = undefined;
    this.#offlineSince = undefined;
    this.#attempt?.abort();
    this.#pause?.end();
    this.connection.value = { state: 'connecting' };
  }

  /** The session whose events are wanted too. Resumes from the same position, so nothing is missed. */
  wantEventsOf(sessionId: string | undefined): void {
    if (this.#eventsOf === sessionId) return;
    this.#eventsOf = sessionId;
    this.#attempt?.abort(SWITCH);
  }

  /** Releases its connection until `resume`. */
  suspend(): void {
    if (this.#rest) return;
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    this.#rest = { over, end };
    this.#attempt?.abort(SWITCH);
  }

  resume(): void {
    this.#rest?.end();
    this.#rest = undefined;
    this.retryNow();
  }

  /** Retries at once, when there is reason to expect success. */
  retryNow(): void {
    this.#pause?.end();
  }

  async #keepReading(run: number): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (run === this.#run) {
      await this.#rest?.over;
      const ended = await this.#read(run);
      if (run !== this.#run) return;
      if (ended === 'switched') continue;
      if (ended === 'worked') pauseMs = FIRST_PAUSE_MS;
      this.#offlineSince ??= Date.now();
      this.connection.value = { state: 'offline', since: this.#offlineSince };
      await this.#wait(pauseMs * (0.75 + Math.random() / 2));
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }

  async #read(run: number): Promise<'worked' | 'failed' | 'switched'> {
    const attempt = new AbortController();
    this.#attempt = attempt;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => attempt.abort('silence'), SILENCE_MS);
    };
    let worked = false;
    try {
      listen();
      const response = await fetch(
        apiUrl('events', this.#eventsOf === undefined ? { events: false } : { eventsOf: this.#eventsOf }),
        {
          headers: {
            Accept: 'text/event-stream',
            ...credentials(),
            ...(this.#position !== undefined && { 'Last-Event-ID': this.#position }),
          },
          cache: 'no-store',
          signal: attempt.signal,
        },
      );
      if (run !== this.#run) return 'failed';
      if (response.status === 401) signedOut('Your sign-in has ended: it expired or was revoked.');
      if (!response.ok || !response.body) return 'failed';
      this.connection.value = { state: 'catching up', since: this.#offlineSince ?? Date.now() };
      const parser = new EventParser();
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        listen();
        if (run !== this.#run) return 'failed';
        worked = true;
        this.#take(parser.push(decoder.decode(value, { stream: true })));
      }
    } catch {
      // A break is a break, whatever it was.
    } finally {
      clearTimeout(silence);
    }
    if (attempt.signal.reason === SWITCH) return 'switched';
    return worked ? 'worked' : 'failed';
  }

  #take(events: ServerSentEvent[]): void {
    const messages: StreamMessage[] = [];
    for (const { id, event, data } of events) {
      if (id !== undefined && id !== '') this.#position = id;
      const message = { name: event, data: JSON.parse(data) as unknown } as StreamMessage;
      if (message.name === 'reset' || message.name === 'live') this.#position = String(message.data.position);
      messages.push(message);
    }
    if (messages.length > 0) this.#onMessages(messages);
    if (messages.some(({ name }) => name === 'live')) {
      this.#offlineSince = undefined;
      this.connection.value = { state: 'connected' };
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#pause = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#pause = { end };
    });
  }
}

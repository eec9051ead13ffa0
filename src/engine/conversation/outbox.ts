import type { DeliveryState } from '../../driver/translate.ts';
import type { SessionEvent } from '../../schema/events.ts';

export interface Message {
  readonly id: string;
  readonly text: string;
  /** How many characters at its beginning are the hub's own words. */
  readonly preamble?: number;
  /** The turn began with it: Claude Code works on it as soon as it arrives. */
  readonly begins?: true;
}

type Stage = 'sent' | 'queued' | 'started';

/** What was said to Claude Code and how far it got: no message may vanish silently. */
export class Outbox {
  /** Messages whose processing has not been reported as ended. */
  readonly #messages = new Map<string, Omit<Message, 'id'> & { stage: Stage }>();
  /**
   * What was said since the last answer, even if Claude Code has accepted it: it may not have written it to the
   * transcript.
   */
  #unanswered: Message[] = [];
  readonly #onDelivered: (id: string) => void;

  /** `onDelivered`: a turn has started with it, or the sender was told that none did. */
  constructor(onDelivered: (id: string) => void = () => undefined) {
    this.#onDelivered = onDelivered;
  }

  add({ id, ...message }: Message): void {
    this.#unanswered.push({ id, ...message });
    this.#messages.set(id, { ...message, stage: 'sent' });
  }

  advance(id: string, stage: DeliveryState): void {
    const message = this.#messages.get(id);
    if (!message) return;
    if (stage !== 'queued' && message.stage !== 'started') this.#onDelivered(id);
    // No other process may get it either.
    if (stage === 'withdrawn') this.#unsay(id);
    if (stage === 'ended' || stage === 'withdrawn') this.#messages.delete(id);
    else message.stage = stage;
  }

  find(id: string): Omit<Message, 'id' | 'begins'> | undefined {
    const { stage: _stage, begins: _begins, ...message } = this.#messages.get(id) ?? {};
    return 'text' in message ? message : undefined;
  }

  /** Answered by a result. A Claude Code that does not say which ones has answered all of them. */
  answered(ids: readonly string[] | undefined): void {
    this.#unanswered = [];
    for (const id of ids ?? [...this.#messages.keys()]) this.#remove(id);
  }

  /** What the turn began with, as long as nobody has heard that Claude Code has taken it up. */
  get opening(): string | undefined {
    const { id = '' } = this.#unanswered[0] ?? {};
    return this.#messages.get(id)?.stage === 'sent' ? id : undefined;
  }

  /** Waits for the end of what Claude Code is doing. One that carries the hub's own words cannot be missed. */
  isQueued(id: string): boolean {
    const { stage, begins, preamble } = this.#messages.get(id) ?? {};
    return (stage === 'sent' || stage === 'queued') && begins === undefined && preamble === undefined;
  }

  /**
   * It could not be delivered, and the caller gets the error; or the caller no longer wants it delivered. If the turn was
   * to begin with it, the next one begins it instead, if there is one.
   */
  takeBack(id: string): 'nothing begins' | undefined {
    const message = this.#messages.get(id);
    if (!message) return undefined;
    this.#unsay(id);
    this.#remove(id);
    if (!message.begins) return undefined;
    const [next] = this.#messages;
    if (!next) return 'nothing begins';
    this.#messages.set(next[0], { ...next[1], begins: true });
    return undefined;
  }

  /** From the events that an earlier process left. */
  restore(events: readonly SessionEvent[]): void {
    const answeredAt = events.findLastIndex(({ body }) => body.kind === 'result');
    this.#unanswered = events
      .slice(answeredAt + 1)
      .flatMap(({ body }) => (body.kind === 'prompt' ? [{ id: body.messageId, text: body.text }] : []));
  }

  /** Accepted by a process that is gone, and never answered. */
  get accepted(): readonly Message[] {
    return this.#unanswered.filter(({ id }) => !this.#messages.has(id));
  }

  /** Claude Code may not have read everything yet, so its report of being idle may be out of date. */
  get unread(): boolean {
    return [...this.#messages.values()].some(({ stage }) => stage === 'sent');
  }

  /** Something that Claude Code has not started on yet: it continues with that when the current turn ends. */
  get waiting(): boolean {
    return [...this.#messages.values()].some(({ stage }) => stage !== 'started');
  }

  /** What no turn has started on. */
  get undelivered(): Message[] {
    return [...this.#messages].flatMap(([id, { text, stage }]) => (stage === 'started' ? [] : [{ id, text }]));
  }

  /** Everything, if Claude Code has not touched any of it; otherwise nothing. */
  get untouched(): Message[] {
    const messages = [...this.#messages].map(([id, message]) => ({ id, ...message }));
    return messages.every(({ stage }) => stage === 'sent') ? messages : [];
  }

  /**
   * Removes everything that no turn has started on. The caller is asked to send it again, so it must not be delivered
   * as well.
   */
  takeUndelivered(): string[] {
    const left = [...this.#messages].filter(([, { stage }]) => stage !== 'started');
    for (const [id] of left) this.#unsay(id);
    for (const id of [...this.#messages.keys()]) this.#remove(id);
    return left.map(([, { text }]) => text);
  }

  #remove(id: string): void {
    const message = this.#messages.get(id);
    if (message && message.stage !== 'started') this.#onDelivered(id);
    this.#messages.delete(id);
  }

  #unsay(id: string): void {
    this.#unanswered = this.#unanswered.filter((message) => message.id !== id);
  }
}

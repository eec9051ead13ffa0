import type { Settings } from '../../config/load-settings.ts';
import type { Clock } from '../../engine/clock.ts';
import type { AuditTrail } from '../../engine/ports.ts';
import { messageOf } from '../../errors/errors.ts';
import { escapeInvisible } from '../../text/invisible.ts';
import type { PushPayload } from '../../schema/api-admin.ts';
import type { StoredPush, StoredRequest, StoredSubscription } from '../../schema/store.ts';
import { NEVER, type DuePush, type Store } from '../../store/contract.ts';
import {
  newPushKeys,
  PushSender,
  type PushDelivery,
  type PushKeys,
  type PushMessage,
  type PushSenderOptions,
} from './web-push.ts';

/** Browsers of one principal. */
const MAX_SUBSCRIPTIONS = 20;
/** Browsers that messages are being sent to. */
const MAX_CONCURRENT = 8;
/** Messages that are taken at once. One browser gets them one after another, so that one that hangs holds up no other. */
const MAX_TAKEN = 5;
/** After this, another hub may send what this one has taken. Longer than a push service may take for all of it. */
const HOLD_MS = 60_000;
/** How often an unanswered request is announced again. */
const MAX_REMINDERS = 3;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 300_000;
const GIVE_UP_MS = 24 * 3_600_000;
/** How long a push service keeps a message for a browser that is off. */
const KEPT_SECONDS = 24 * 3600;
/** While much is stored, the queue is looked at this often. */
const SHORTEST_PAUSE_MS = 100;
/** What another hub was told is noticed this late at most. */
const LONGEST_PAUSE_MS = 5_000;
const MAX_TOOL_NAME = 80;

export interface PusherServices {
  readonly store: Pick<
    Store,
    'subscriptions' | 'putSubscription' | 'takePushes' | 'savePush' | 'removePush' | 'removeSubscription' | 'subscribe'
  >;
  readonly sender: Pick<PushSender, 'publicKey' | 'check' | 'send'>;
  /** 0: never. */
  readonly remindAfterMs: number;
  readonly clock: Clock;
  readonly audit: AuditTrail;
  warn(line: string): void;
}

/** Apple's push service refuses messages without a plausible address of whoever sends them. */
const NO_CONTACT = 'mailto:claude-code-mcp@example.com';

/** The hub's key pair is made when it is first needed, and shared by all hubs on the store. */
export async function openPusher(
  { pushHosts: hosts, remindAfter, behindProxy }: Pick<Settings, 'pushHosts' | 'remindAfter' | 'behindProxy'>,
  store: Store,
  { ca, ...services }: Pick<PusherServices, 'clock' | 'audit' | 'warn'> & Pick<PushSenderOptions, 'ca'>,
): Promise<Pusher> {
  const stored = await store.ensureSetting('push-keys', JSON.stringify(newPushKeys()));
  const keys = JSON.parse(stored) as PushKeys;
  const sender = new PushSender({
    keys,
    hosts,
    contact: behindProxy ?? NO_CONTACT,
    now: Date.now,
    ...(ca !== undefined && { ca }),
  });
  return new Pusher({ ...services, store, sender, remindAfterMs: remindAfter });
}

/**
 * Tells browsers what waits for them. The queue is in the store, and each entry of it is sent by one hub; it is read
 * and sent apart from everything else, so that nothing waits for a push service.
 */
export class Pusher {
  readonly #services: PusherServices;
  readonly #stop = new AbortController();
  readonly #sending = new Map<string, Promise<void>>();
  #running: Promise<void> | undefined;
  #wake = (): void => undefined;
  #isWoken = true;
  /** Outcomes so far. */
  readonly counts = { delivered: 0, failed: 0, dropped: 0 };

  constructor(services: PusherServices) {
    this.#services = services;
  }

  /** What browsers subscribe with. */
  get publicKey(): string {
    return this.#services.sender.publicKey;
  }

  /** Throws INVALID_ARGUMENT if nothing could be sent to it. */
  async subscribe(subscription: StoredSubscription): Promise<void> {
    const { store, sender } = this.#services;
    sender.check(subscription);
    await store.putSubscription(subscription, { most: MAX_SUBSCRIPTIONS, remindAfterMs: this.#remindAfterMs });
    this.look();
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** There may be something to send. */
  look(): void {
    this.#isWoken = true;
    this.#wake();
  }

  /** Tells one browser that its notifications work. */
  test(subscription: StoredSubscription): Promise<PushDelivery> {
    return this.#services.sender.send(subscription, pushMessage({ state: 'test' }, 'test'), this.#stop.signal);
  }

  /** Idempotent. What was not sent yet stays in the store. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.look();
    await this.#running;
    await Promise.all(this.#sending.values());
  }

  async #run(): Promise<void> {
    const { store } = this.#services;
    const { signal } = this.#stop;
    const unsubscribe = store.subscribe(({ others }) => {
      if (others) this.look();
    });
    while (!signal.aborted) {
      this.#isWoken = false;
      let pauseMs = LONGEST_PAUSE_MS;
      try {
        pauseMs = await this.#sendDue();
      } catch (error) {
        this.#services.warn(`push: the queue cannot be read: ${messageOf(error)}`);
      }
      await this.#pause(SHORTEST_PAUSE_MS, 'whatever happens');
      await this.#pause(Math.min(pauseMs, LONGEST_PAUSE_MS));
    }
    unsubscribe();
  }

  /** Returns how long until something else is due. */
  async #sendDue(): Promise<number> {
    const { store } = this.#services;
    const free = MAX_CONCURRENT - this.#sending.size;
    if (free === 0 || (await store.subscriptions()).length === 0) return LONGEST_PAUSE_MS;
    const taken = await store.takePushes({
      limit: Math.min(free, MAX_TAKEN),
      except: [...this.#sending.keys()],
      holdMs: HOLD_MS,
    });
    const { pushes, now, nextInMs = LONGEST_PAUSE_MS } = taken;
    for (const id of new Set(pushes.map(({ push }) => push.subscriptionId))) {
      const own = pushes.filter(({ push }) => push.subscriptionId === id);
      const sending = this.#sendAll(own, now)
        .catch((error: unknown) => this.#services.warn(`push: ${messageOf(error)}`))
        .finally(() => {
          this.#sending.delete(id);
          this.look();
        });
      this.#sending.set(id, sending);
    }
    return nextInMs;
  }

  async #sendAll(pushes: readonly DuePush[], now: number): Promise<void> {
    for (const due of pushes) await this.#send(due, now);
  }

  /** `now`: when it was taken, by the store's clock. */
  async #send({ push, subscription, request }: DuePush, now: number): Promise<void> {
    const { store, sender } = this.#services;
    const isSettled = request === undefined || request.outcome !== undefined;
    // Settled before anybody can have been told.
    if (isSettled && push.sent === 0 && push.attempts === 0) return store.removePush(push);
    const payload: PushPayload = {
      state: isSettled ? 'settled' : 'open',
      requestId: push.requestId,
      ...(request && { kind: request.kind, tool: toolNameOf(request), ageMs: Math.max(0, now - request.createdAt) }),
    };
    const delivery = await sender.send(subscription, pushMessage(payload, push.requestId), this.#stop.signal);
    const failed = {
      ...push,
      attempts: push.attempts + 1,
      failingSince: push.attempts === 0 ? now : push.failingSince,
    };
    // It may have arrived: what follows is sent too.
    if (delivery.outcome !== 'delivered' && this.#stop.signal.aborted)
      return store.savePush({ ...failed, notBefore: now });
    switch (delivery.outcome) {
      case 'delivered':
        this.counts.delivered++;
        return isSettled ? store.removePush(push) : store.savePush(this.#announced(push, now));
      case 'gone':
        this.#record(subscription, 'ended by the browser');
        return store.removeSubscription(subscription.id);
      case 'refused':
        return this.#drop(push, delivery.why, isSettled);
      case 'failed': {
        this.counts.failed++;
        if (now - failed.failingSince >= GIVE_UP_MS) return this.#drop(push, delivery.why, isSettled);
        const waitMs = Math.max(
          Math.min(FIRST_RETRY_MS * 2 ** push.attempts, MAX_RETRY_MS),
          delivery.retryAfterMs ?? 0,
        );
        return store.savePush({ ...failed, notBefore: now + waitMs });
      }
    }
  }

  #announced(push: StoredPush, at: number): StoredPush {
    const sent = push.sent + 1;
    const remindAt = sent > MAX_REMINDERS ? NEVER : at + (this.#remindAfterMs ?? NEVER);
    return { ...push, sent, attempts: 0, failingSince: 0, notBefore: at, remindAt };
  }

  /** This message is lost, not the request: what is next to be told about it still is. */
  #drop(push: StoredPush, why: string, isSettled: boolean): Promise<void> {
    const { store, audit } = this.#services;
    this.counts.dropped++;
    audit.record({
      kind: 'server',
      who: 'server',
      what: 'push notification',
      outcome: 'dropped',
      details: { why, attempts: push.attempts + 1, request: push.requestId, subscription: push.subscriptionId },
    });
    if (isSettled) return store.removePush(push);
    return store.savePush({ ...push, attempts: 0, failingSince: 0, notBefore: 0, remindAt: NEVER });
  }

  get #remindAfterMs(): number | undefined {
    const { remindAfterMs } = this.#services;
    return remindAfterMs === 0 ? undefined : remindAfterMs;
  }

  #record({ id, principal }: StoredSubscription, outcome: string): void {
    const entry = { kind: 'server', who: 'server', what: 'push subscription', principal } as const;
    this.#services.audit.record({ ...entry, outcome, details: { subscription: id } });
  }

  #pause(ms: number, until: 'woken' | 'whatever happens' = 'woken'): Promise<void> {
    const { signal } = this.#stop;
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        this.#wake = () => undefined;
        resolve();
      };
      const cancel = this.#services.clock.after(ms, done);
      this.#wake = () => {
        if (until === 'woken' || signal.aborted) done();
      };
      if (signal.aborted || (until === 'woken' && this.#isWoken)) done();
    });
  }
}

function pushMessage(payload: PushPayload, topic: string): PushMessage {
  return {
    payload: JSON.stringify(payload),
    topic,
    urgency: payload.state === 'settled' ? 'normal' : 'high',
    ttlSeconds: KEPT_SECONDS,
  };
}

/** A session can choose it: a tool of an MCP server is named by that server. */
function toolNameOf({ ask }: StoredRequest): string {
  const name = ask['toolName'];
  return typeof name === 'string' ? escapeInvisible(name).slice(0, MAX_TOOL_NAME) : '';
}

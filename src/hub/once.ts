import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { DomainError } from '../errors/errors.ts';
import { addedBy, newCommandId } from '../fleet/command-record.ts';
import type { Started } from '../engine/elsewhere/elsewhere.ts';
import type { CallOnce, ToolAnswer } from '../mcp/call-tool.ts';
import { IDEMPOTENCY_META_KEY } from '../schema/enums.ts';
import { isObject } from '../schema/json.ts';
import type { HubRef, StoredCommand } from '../schema/store.ts';
import { StoreConflict, type Store } from '../store/contract.ts';
import { untilReachable } from '../store/until-reachable.ts';
import { nextWake, writeReliably } from '../store/wake-ups.ts';
import { isUnderWay, NO_SESSION } from '../store/row-facts.ts';

const MAX_KEY_LENGTH = 200;
/** How long a repeat waits for a call that another hub is carrying out. */
const PATIENCE_MS = 30_000;

/** An outcome that is larger is kept in a short form. */
const MAX_OUTCOME_BYTES = 64 * 1024;
/** Of one principal: beyond this, its outcomes are kept in a short form. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** Beyond this, only calls without a key are accepted until older ones are forgotten. */
const MAX_KEYED_BYTES = 64 * 1024 * 1024;
/** What a command takes besides its outcome, roughly. */
const COMMAND_BYTES = 1_000;
/** Older ones are forgotten in the meantime. */
const RECOUNT_MS = 10 * 60_000;

const NOTED_AFTER_MS = 200;

const STOPPED = 'The hub stopped while carrying this out. Check the session before you send it again.';

/** A call as identified by its key. */
export interface KeyedCall {
  /** What the key is called where the caller set it. */
  readonly keyName: string;
  readonly key: string;
  readonly principal: string;
  /** What is called, in the interface's terms: a different call with the same key is an error. */
  readonly operation: string;
  readonly path: string;
  /** What was sent: it may contain secrets, so only its digest is kept. */
  readonly input: unknown;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortSignal;
  /** What it does happens once however often it is carried out, so a repeat need not know how far the first came. */
  readonly mayRunAgain?: boolean;
}

export interface OnceOptions {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly hub: HubRef;
  /** Time of day. */
  readonly now: () => number;
}

/**
 * `before`: what an earlier hub had carried out of this call. `isRepeat`: it was begun by one that may have carried it out.
 * `note` keeps what was carried out, for the next one.
 */
export type CarryOut<Answer> = (part: {
  readonly before: object | undefined;
  readonly isRepeat: boolean;
  readonly note: (outcome: object) => void;
}) => Promise<Answer>;

/**
 * A call with an idempotency key runs once: it is a stored command, started before and finished after. A repeat gets
 * the stored answer, even an error. A call that was started by a past incarnation of a hub is not run again, unless it
 * is one of which nothing can happen twice; one that had only to wait by then goes on waiting.
 */
export class Once {
  readonly #options: OnceOptions;
  /** By command id. */
  readonly #underWay = new Map<string, Promise<object>>();
  /** What is stored for the keys of a principal. */
  readonly #kept = new Map<string, { bytes: number; readonly countedAt: number }>();
  #isStopping = false;

  constructor(options: OnceOptions) {
    this.#options = options;
  }

  /** `kept`: which part of the answer is stored for repeats. */
  async run<Answer extends object>(
    call: KeyedCall,
    carryOut: CarryOut<Answer>,
    kept: (answer: Answer) => object = (answer) => answer,
  ): Promise<{ answer: Answer; isRepeat: boolean }> {
    const { key, keyName, principal, operation, path, input, signal } = call;
    if (!/^[\x21-\x7e]+$/.test(key) || key.length > MAX_KEY_LENGTH)
      throw new DomainError(
        'INVALID_ARGUMENT',
        `${keyName}: 1 to ${MAX_KEY_LENGTH} printable ASCII characters without spaces, a UUID for example.`,
      );
    const { hub, now } = this.#options;
    const command: Omit<StoredCommand, 'progress'> = {
      id: newCommandId(hub),
      sessionId: NO_SESSION,
      principal,
      key,
      body: { operation, path, digest: digestOf(input) },
      createdAt: now(),
    };
    const known = await this.#known(command);
    if (known) {
      if (JSON.stringify(bodyParts(known)) !== JSON.stringify(bodyParts(command)))
        throw new DomainError(
          'INVALID_ARGUMENT',
          `This ${keyName} was used for another call; use a new key for a new call.`,
        );
      const ended = await this.#ended(known);
      if (ended === 'unknown' && call.mayRunAgain !== true) throw outcomeUnknown();
      if (ended !== 'unknown' && 'answer' in ended) return { answer: ended.answer as Answer, isRepeat: true };
      const before = ended === 'unknown' ? undefined : ended.carriedOut;
      return { answer: await carryOut({ before, isRepeat: true, note: () => undefined }), isRepeat: true };
    }
    const waiting: { keep?: () => void; timer?: NodeJS.Timeout } = {};
    const note = (outcome: object): void => {
      const keep = (): void => {
        const progress = { status: 'carriedOut' as const, at: now(), result: outcome };
        // The answer may have been faster, and without a store it is not stored either.
        this.#finish(command.id, progress).catch(() => undefined);
      };
      // Most answers come at once, and are stored themselves.
      waiting.keep = keep;
      waiting.timer = setTimeout(keep, NOTED_AFTER_MS).unref();
    };
    const answer = carryOut({ before: undefined, isRepeat: false, note }).then(async (one) => {
      clearTimeout(waiting.timer);
      if (waiting.keep && signal?.aborted === true) {
        // Whoever sends it again goes on waiting.
        waiting.keep();
        return one;
      }
      const progress = { status: 'done' as const, at: now(), result: this.#bounded(principal, kept(one)) };
      await this.#finish(command.id, progress).catch((error: unknown) => {
        // It took so long that this hub was considered gone, and a repeat was told so.
        if (error instanceof StoreConflict) throw outcomeUnknown();
        // Or a repeat at another hub would wait for it as long as this one lives.
        const finish = () => this.#finish(command.id, progress);
        untilReachable(finish, () => this.#isStopping).catch(() => undefined);
        throw error;
      });
      return one;
    });
    this.#underWay.set(command.id, answer);
    try {
      return { answer: await answer, isRepeat: false };
    } finally {
      clearTimeout(waiting.timer);
      this.#underWay.delete(command.id);
    }
  }

  /** Resolves when the calls under way have ended, but at the latest after this long. */
  async settled(withinMs: number): Promise<void> {
    this.#isStopping = true;
    const late = new AbortController();
    const all = Promise.allSettled(this.#underWay.values());
    await Promise.race([all, pause(withinMs, undefined, { signal: late.signal }).catch(() => undefined)]);
    late.abort();
  }

  /** The command that already used this key, if any; otherwise this one is stored. */
  async #known(command: Omit<StoredCommand, 'progress'>): Promise<StoredCommand | undefined> {
    const { store } = this.#options;
    const find = (): Promise<StoredCommand | undefined> => store.commandByKey(command.principal, command.key ?? '');
    const known = await find();
    if (known) return known;
    const kept = await this.#keptFor(command.principal);
    if (kept.bytes >= MAX_KEYED_BYTES)
      throw new DomainError(
        'TOO_MANY_REQUESTS',
        `${String(kept.bytes)} bytes are stored for your idempotency keys. Call without a key until older ones are forgotten.`,
      );
    kept.bytes += COMMAND_BYTES;
    try {
      await writeReliably(store, [{ type: 'command.add', command }]);
    } catch (error) {
      if (!(error instanceof StoreConflict) || error.conflict !== 'keyReused') throw error;
    }
    const stored = await find();
    return stored?.id === command.id ? undefined : stored;
  }

  async #keptFor(principal: string): Promise<{ bytes: number }> {
    const { store, now } = this.#options;
    const known = this.#kept.get(principal);
    if (known && now() - known.countedAt < RECOUNT_MS) return known;
    const counted = { bytes: await store.keyedBytes(principal), countedAt: now() };
    this.#kept.set(principal, counted);
    return counted;
  }

  /** A repeat needs to know that it was done, not everything that was answered. */
  #bounded(principal: string, outcome: object): object {
    const kept = this.#kept.get(principal) ?? { bytes: 0 };
    const size = Buffer.byteLength(JSON.stringify(outcome));
    const fits = size <= MAX_OUTCOME_BYTES && kept.bytes + size <= MAX_KEPT_BYTES;
    kept.bytes += fits ? size : COMMAND_BYTES;
    return fits ? outcome : briefly(outcome, size);
  }

  #finish(commandId: string, progress: StoredCommand['progress']): Promise<void> {
    const { store, hub } = this.#options;
    return store.write([{ type: 'command.finish', sessionId: NO_SESSION, commandId, progress }], hub);
  }

  async #ended(known: StoredCommand): Promise<{ answer: object } | { carriedOut: object } | 'unknown'> {
    const here = this.#underWay.get(known.id);
    if (here) return { answer: await here };
    const command = await this.#settled(known.id);
    if (command?.progress.status === 'done') return { answer: command.progress.result as object };
    if (command?.progress.status === 'carriedOut') return { carriedOut: command.progress.result as object };
    if (command && isUnderWay(command)) {
      const unknown = { status: 'unknown' as const, at: this.#options.now(), check: STOPPED };
      await this.#finish(known.id, unknown).catch((error: unknown) => {
        // Another hub has said so first.
        if (!(error instanceof StoreConflict)) throw error;
      });
    }
    return 'unknown';
  }

  /** The command once it has ended, or once the hub that started it can no longer end it. */
  async #settled(id: string): Promise<StoredCommand | undefined> {
    const { store } = this.#options;
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const { woken, stop } = nextWake(store);
      try {
        const command = await store.command(id);
        if (!command || !isUnderWay(command) || !(await this.#lives(id))) return await store.command(id);
        if (performance.now() > deadline)
          throw new DomainError('UNAVAILABLE', 'Another hub is still carrying this out; try again.');
        await woken;
      } finally {
        stop();
      }
    }
  }

  /** Whether the hub incarnation that started it is still alive. In this incarnation it would be in progress here. */
  async #lives(commandId: string): Promise<boolean> {
    const by = addedBy(commandId);
    if (by?.hub === this.#options.hub.hub) return false;
    const lease = (await this.#options.store.leases()).find(({ hub }) => hub === by?.hub);
    return lease?.expired === false && lease.fence === by?.fence;
  }
}

function outcomeUnknown(): DomainError {
  return new DomainError('UNAVAILABLE', `The outcome is unknown. ${STOPPED}`);
}

function bodyParts({ body }: Pick<StoredCommand, 'body'>): unknown[] {
  return [body['operation'], body['path'], body['digest']];
}

function digestOf(input: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(input ?? null))
    .digest('hex');
}

const MAX_TEXT = 200;
const MAX_FIELDS = 40;

/** The parts of an outcome that are kept when all of it would be too much, in the same shape, with a note. */
function briefly(outcome: object, bytes: number): object {
  const note = `This was carried out. Its answer had ${String(bytes)} bytes, too many to be kept for a repeat; read the session for its present state.`;
  // The result of a tool has the same object twice, and callers read either.
  const { structuredContent, isError } = outcome as { structuredContent?: unknown; isError?: unknown };
  if (isObject(structuredContent)) {
    const answer = { ...brief(structuredContent), warnings: [note] };
    return {
      content: [{ type: 'text', text: JSON.stringify(answer) }],
      structuredContent: answer,
      ...(isError === true && { isError }),
    };
  }
  const { status, json } = outcome as { status?: unknown; json?: unknown };
  return { ...(typeof status === 'number' && { status }), json: { ...(isObject(json) && brief(json, 2)), note } };
}

/** What identifies things and says how they are: numbers, short texts, and lists without their items. */
function brief(value: Record<string, unknown>, levels = 1): Record<string, unknown> {
  const fields = Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    if (name.length > MAX_TEXT) return [];
    if (typeof field === 'number' || typeof field === 'boolean' || field === null) return [[name, field]];
    if (typeof field === 'string') return field.length > MAX_TEXT ? [] : [[name, field]];
    if (Array.isArray(field)) return [[name, []]];
    return levels > 1 && isObject(field) ? [[name, brief(field, levels - 1)]] : [];
  });
  return Object.fromEntries(fields.slice(0, MAX_FIELDS));
}

/** Runs a tool call once per key in its `_meta`. */
export function onceForTools(once: Once): CallOnce {
  return async ({ principal, key, tool, args, signal }, run) => {
    const called = { operation: tool, path: 'tools/call', input: args };
    const call = { keyName: IDEMPOTENCY_META_KEY, key, principal, ...called, signal };
    const carryOut: CarryOut<ToolAnswer> = ({ before, note }) => run({ before: before as Started | undefined, note });
    return (await once.run(call, carryOut)).answer;
  };
}

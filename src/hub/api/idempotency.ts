import { createHash, randomUUID } from 'node:crypto';
import { DomainError } from '../../errors/errors.ts';
import type { StoredCommand } from '../../schema/store.ts';
import { StoreConflict } from '../../store/contract.ts';
import type { RouteRequest, RouteResponse } from '../http/route.ts';
import type { ApiContext } from './context.ts';
import type { ApiRoute } from './define-route.ts';

const LONGEST_KEY = 200;
/** How long a repeat waits for what another hub carries out. */
const PATIENCE_MS = 30_000;

/** What is carried out here at once is in no session's queue, where a hub would take it up. */
const NO_SESSION = 'api';

interface Answer {
  readonly status: number;
  readonly json?: unknown;
}

interface Write {
  readonly route: ApiRoute;
  readonly request: RouteRequest;
  readonly key: string;
}

/**
 * A write with an `Idempotency-Key` is carried out once: it is a command of the store, begun before and finished after. A
 * repeat gets the stored answer, an error too. One that was begun by an earlier life of the hub is never run again.
 */
export class IdempotentWrites {
  readonly #context: Pick<ApiContext, 'store' | 'hub' | 'now'>;
  /** By command id. */
  readonly #underWay = new Map<string, Promise<Answer>>();

  constructor(context: Pick<ApiContext, 'store' | 'hub' | 'now'>) {
    this.#context = context;
  }

  async once({ route, request, key }: Write, run: () => Promise<RouteResponse>): Promise<RouteResponse> {
    if (!/^[\x21-\x7e]+$/.test(key) || key.length > LONGEST_KEY)
      throw new DomainError(
        'INVALID_ARGUMENT',
        `Idempotency-Key: 1 to ${LONGEST_KEY} printable ASCII characters without spaces, a UUID for example.`,
      );
    const { hub, now } = this.#context;
    const command: Omit<StoredCommand, 'progress'> = {
      id: `${lifeOf(hub)}${randomUUID()}`,
      sessionId: NO_SESSION,
      principal: request.principal.id,
      key,
      // What was sent may hold secrets; its digest is enough to tell another body.
      body: { operation: route.operation, path: request.path, digest: digestOf(request.body) },
      createdAt: now(),
    };
    const known = await this.#begin(command);
    if (known) return this.#repeated(known, command, route);
    const answer = this.#carryOut(command, route, run);
    this.#underWay.set(command.id, answer);
    try {
      return await answer;
    } finally {
      this.#underWay.delete(command.id);
    }
  }

  /** The command that had this key before, if any. */
  async #begin(command: Omit<StoredCommand, 'progress'>): Promise<StoredCommand | undefined> {
    const { store } = this.#context;
    const find = (): Promise<StoredCommand | undefined> => store.commandByKey(command.principal, command.key ?? '');
    const known = await find();
    if (known) return known;
    try {
      await store.write([{ type: 'command.add', command }]);
    } catch (error) {
      if (!(error instanceof StoreConflict) || error.conflict !== 'keyReused') throw error;
    }
    const stored = await find();
    return stored?.id === command.id ? undefined : stored;
  }

  async #carryOut(
    { id }: Omit<StoredCommand, 'progress'>,
    { repeat }: ApiRoute,
    run: () => Promise<RouteResponse>,
  ): Promise<Answer> {
    const answer = plain(await run());
    const result = repeat === 'same-answer' || answer.status >= 400 ? answer : { status: answer.status };
    await this.#finish(id, { status: 'done', at: this.#context.now(), result });
    return answer;
  }

  #finish(commandId: string, progress: StoredCommand['progress']): Promise<void> {
    const { store, hub } = this.#context;
    return store.write([{ type: 'command.finish', sessionId: NO_SESSION, commandId, progress }], hub);
  }

  async #repeated(
    known: StoredCommand,
    command: Omit<StoredCommand, 'progress'>,
    { repeat }: ApiRoute,
  ): Promise<Answer> {
    if (JSON.stringify(bodyParts(known)) !== JSON.stringify(bodyParts(command)))
      throw new DomainError(
        'INVALID_ARGUMENT',
        'This Idempotency-Key was used for another call; use a new key for a new call.',
      );
    const done = await this.#ended(known);
    if (repeat === 'refused' && done.status < 400)
      throw new DomainError('INVALID_ARGUMENT', 'This was done before, and its answer is shown only once.');
    return done;
  }

  async #ended(known: StoredCommand): Promise<Answer> {
    const here = this.#underWay.get(known.id);
    if (here) return here;
    const { store, hub } = this.#context;
    const ours = known.id.startsWith(`${hub.hub}.`);
    const command = isOpen(known) && !ours ? await this.#elsewhere(known.id) : await store.command(known.id);
    if (command?.progress.status === 'done') return command.progress.result as Answer;
    const check = 'The hub stopped while it carried this out. Look at the session before you send it again.';
    if (command && isOpen(command)) await this.#finish(known.id, { status: 'unknown', at: this.#context.now(), check });
    throw new DomainError('UNAVAILABLE', `The outcome is unknown. ${check}`);
  }

  async #elsewhere(id: string): Promise<StoredCommand | undefined> {
    const { store } = this.#context;
    const deadline = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const woken = new Promise<void>((resolve) => {
        const stop = store.subscribe(() => done());
        const done = (): void => {
          stop();
          deadline.removeEventListener('abort', done);
          resolve();
        };
        deadline.addEventListener('abort', done);
      });
      const command = await store.command(id);
      if (!command || !isOpen(command)) return command;
      if (deadline.aborted) throw new DomainError('UNAVAILABLE', 'Another hub still carries this out; ask again.');
      await woken;
    }
  }
}

function isOpen({ progress: { status } }: Pick<StoredCommand, 'progress'>): boolean {
  return status === 'queued' || status === 'taken';
}

function lifeOf({ hub, fence }: ApiContext['hub']): string {
  return `${hub}.${fence}.`;
}

function bodyParts({ body }: Pick<StoredCommand, 'body'>): unknown[] {
  return [body['operation'], body['path'], body['digest']];
}

function digestOf(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(body ?? null))
    .digest('hex');
}

/** Only JSON answers are kept; a write gives no other. */
function plain(response: RouteResponse): Answer {
  if (!('status' in response)) throw new TypeError('A write cannot answer with a stream.');
  return { status: response.status, ...('json' in response && { json: response.json }) };
}

import { setTimeout as delay } from 'node:timers/promises';
import { EngineClient } from '../engine/client.ts';
import type { Engine } from '../engine/engine.ts';
import { presentRules } from '../engine/elsewhere/session-recall.ts';
import { messageOf } from '../errors/errors.ts';
import type { Command } from '../schema/commands.ts';
import type { Change, CommandProgress, HubRef, StoredCommand } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import { commandOf, errorText, type CommandRecord, type CommandResult } from './command-record.ts';

/** A lost wake-up delays a command by no more than this. */
const LOOK_EVERY_MS = 1_000;
const AT_ONCE = 100;

/**
 * What is to be done next; a later one includes those before it. `take`: a command was queued for this hub by name, so
 * there is no need to check for one first. `recover`: the store's response was lost, so that some may have been taken
 * without this hub knowing.
 */
const NEEDS = ['nothing', 'check', 'take', 'recover', 'closed'] as const;
type Need = (typeof NEEDS)[number];

export interface CommandRunnerOptions {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly by: HubRef;
  readonly engine: Engine;
  /** Stores what happens in the engine, and the outcome of a command with it. */
  readonly journal: { finished(...outcome: readonly Change[]): Promise<void> };
  readonly log: (level: 'debug' | 'error', line: string) => void;
}

/**
 * Carries out commands from other hubs on the sessions that run here: each command once, those of one session in order, and
 * its outcome is stored before it is reported.
 */
export class CommandRunner {
  readonly #options: CommandRunnerOptions;
  readonly #underWay = new Set<Promise<void>>();
  /** By id, until their outcome is known to be stored. */
  readonly #begun = new Set<string>();
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout;
  #taking: Promise<void> | undefined;
  #need: Need = 'nothing';

  constructor(options: CommandRunnerOptions) {
    this.#options = options;
    this.#unsubscribe = options.store.subscribe(({ queued, ended, hub }) => {
      if (hub !== undefined && hub !== options.by.hub) return;
      if (queued || ended) this.#wake(queued && hub !== undefined ? 'take' : 'check');
    });
    this.#timer = setInterval(() => this.#wake('check'), LOOK_EVERY_MS).unref();
    this.#wake('check');
  }

  /** Takes no more, and waits for those in progress. */
  async close(patienceMs = 2_000): Promise<void> {
    this.#raise('closed');
    this.#unsubscribe();
    clearInterval(this.#timer);
    await this.#taking;
    const timer = new AbortController();
    await Promise.race([
      Promise.all(this.#underWay),
      delay(patienceMs, undefined, { signal: timer.signal, ref: false }),
    ]);
    timer.abort();
  }

  #wake(need: 'check' | 'take'): void {
    this.#raise(need);
    if (this.#need === 'closed') return;
    this.#taking ??= this.#takeAll()
      .catch((error: unknown) => this.#options.log('debug', `commands: ${messageOf(error)}`))
      .finally(() => (this.#taking = undefined));
  }

  #raise(need: Need): void {
    if (NEEDS.indexOf(need) > NEEDS.indexOf(this.#need)) this.#need = need;
  }

  async #takeAll(): Promise<void> {
    while (this.#need !== 'nothing' && this.#need !== 'closed') {
      const need = this.#need;
      this.#need = 'nothing';
      for (const command of await this.#take(need)) {
        this.#begun.add(command.id);
        const run = this.#run(command)
          .catch((error: unknown) => this.#options.log('error', `command ${command.id}: ${messageOf(error)}`))
          .finally(() => this.#underWay.delete(run));
        this.#underWay.add(run);
      }
    }
  }

  async #take(need: 'check' | 'take' | 'recover'): Promise<StoredCommand[]> {
    const { store, by } = this.#options;
    if (need === 'check' && !(await store.hasCommands(by))) return [];
    try {
      const taken = await store.takeCommands(by, AT_ONCE, need === 'recover' ? this.#begun : undefined);
      if (taken.length >= AT_ONCE) this.#raise('check');
      return taken;
    } catch (error) {
      // Nothing is tried again before the next wake-up: the store is probably still away.
      this.#raise('recover');
      throw error;
    }
  }

  async #run(command: StoredCommand): Promise<void> {
    const { sessionId, id } = command;
    const now = Date.now;
    let progress: CommandProgress;
    try {
      const record = commandOf(command);
      const client = await this.#clientFor(record);
      const result: CommandResult = { value: await executed(client, sessionId, record.command) };
      progress = { status: 'done', at: now(), result: asJson(result) };
    } catch (error) {
      progress = { status: 'failed', at: now(), error: errorText(error) };
    }
    await this.#options.journal.finished({ type: 'command.finish', sessionId, commandId: id, progress });
    this.#begun.delete(id);
    // Commands queued for the session's previous hub do not wake this one.
    if (command.placedOn !== this.#options.by.hub) this.#wake('check');
  }

  async #clientFor({ principal, rules }: CommandRecord): Promise<EngineClient> {
    const { engine } = this.#options;
    const settings = { ...engine.settings, ...presentRules(engine.settings, rules) };
    const access = await engine.accessOf(principal);
    const connection = { principal, rules: engine.rulesFor({ settings, cwd: undefined, access }), showsForms: false };
    return new EngineClient(engine, connection);
  }
}

function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

/** A session that another hub placed here gets the id that was chosen there. */
function executed(client: EngineClient, sessionId: string, command: Command): Promise<unknown> {
  return command.kind === 'start' ? client.start(command, sessionId) : client.execute(command);
}

import { setTimeout as delay } from 'node:timers/promises';
import { EngineClient } from '../engine/client.ts';
import type { Engine } from '../engine/engine.ts';
import { presentRules } from '../engine/session/session-recall.ts';
import { messageOf } from '../errors/errors.ts';
import type { Command } from '../schema/commands.ts';
import type { Change, CommandProgress, HubRef, StoredCommand } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import { commandOf, errorText, type CommandRecord, type CommandResult } from './command-record.ts';

/** A lost wake-up delays a command by no more than this. */
const LOOK_EVERY_MS = 1_000;
const AT_ONCE = 100;

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
  #isWoken = false;
  /** A command was queued for this hub by name: no need to check for one first. */
  #isExpected = false;
  /** A response from the store was lost: some may have been taken without this hub knowing. */
  #isUnsure = false;
  #closed = false;

  constructor(options: CommandRunnerOptions) {
    this.#options = options;
    this.#unsubscribe = options.store.subscribe(({ queued, ended, hub }) => {
      if (hub !== undefined && hub !== options.by.hub) return;
      this.#isExpected ||= queued && hub !== undefined;
      if (queued || ended) this.#wake();
    });
    this.#timer = setInterval(() => this.#wake(), LOOK_EVERY_MS).unref();
    this.#wake();
  }

  /** Takes no more, and waits for those in progress. */
  async close(patienceMs = 2_000): Promise<void> {
    this.#closed = true;
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

  #wake(): void {
    this.#isWoken = true;
    if (this.#closed) return;
    this.#taking ??= this.#takeAll()
      .catch((error: unknown) => this.#options.log('debug', `commands: ${messageOf(error)}`))
      .finally(() => (this.#taking = undefined));
  }

  async #takeAll(): Promise<void> {
    const { store, by } = this.#options;
    while (this.#isWoken && !this.#closed) {
      const mayTake = this.#isExpected || this.#isUnsure;
      this.#isWoken = this.#isExpected = false;
      if (!mayTake && !(await store.hasCommands(by))) continue;
      const has = this.#isUnsure ? this.#begun : undefined;
      this.#isUnsure = true;
      const taken = await store.takeCommands(by, AT_ONCE, has);
      this.#isUnsure = false;
      this.#isWoken ||= taken.length >= AT_ONCE;
      for (const command of taken) {
        this.#begun.add(command.id);
        const run = this.#run(command)
          .catch((error: unknown) => this.#options.log('error', `command ${command.id}: ${messageOf(error)}`))
          .finally(() => this.#underWay.delete(run));
        this.#underWay.add(run);
      }
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
    if (command.placedOn !== this.#options.by.hub) this.#wake();
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

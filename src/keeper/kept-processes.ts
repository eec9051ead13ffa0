/** A hub's processes, held by its keeper: started there, read and written over a socket, and still there for the next hub. */

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { ProcessHome, RunOwner, Starter } from '../platform/process-home.ts';
import { messageOf } from '../errors/errors.ts';
import { markerEnv, toolEnv } from '../platform/system.ts';
import { thisPlace } from '../platform/owner-records.ts';
import { isAlive, signalIfSame } from '../platform/processes.ts';
import { runsInGroups } from '../platform/run-groups.ts';
import { sweepLeftBehind } from '../platform/process-owner.ts';
import { KeptChild, type Wire } from './kept-child.ts';
import {
  FrameReader,
  inputFrame,
  keeperFiles,
  KEEPER_PROTOCOL,
  messageFrame,
  proofOf,
  type EndedRecord,
  type Frame,
  type FromHub,
  type FromKeeper,
  type KeeperRecord,
  type KeptRunState,
} from './protocol.ts';

const START_MS = 10_000;
const LOOK_AGAIN_MS = 10;
const PING_EVERY_MS = 5_000;
/**
 * A keeper that leaves this many questions in a row without an answer is taken for dead: it is ended, and its processes
 * with it. Counted, not timed: a hub that was suspended has not asked.
 */
const MAX_UNANSWERED = 3;
const STOP_MS = 8_000;

/** What the next hub has to know about a run; stored by the keeper, read by nobody else. */
export interface RunLabel {
  readonly session: string;
  /** The store that knows the session: a hub on another one leaves the run alone. */
  readonly store: string;
  /** The rules that the process was launched under. */
  readonly rules: Readonly<Record<string, unknown>>;
}

/** A process that an earlier hub started. */
export interface KeptRunOffer extends Omit<KeptRunState, 'label'> {
  readonly label: RunLabel;
}

export interface KeptProcessesOptions {
  readonly stateDir: string;
  readonly socket: string;
  /** The file of the keeper. */
  readonly program: string;
  readonly keepMs: number;
  /** What the keeper itself needs of the environment: where the home and temporary files are. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts the keeper where a service manager has a unit for it; undefined if this process is to start it. */
  readonly startUnit?: (() => Promise<boolean>) | undefined;
  /** Resolves when everything that has happened so far is stored; undefined if it already is. */
  readonly everStored: () => Promise<void> | undefined;
  readonly log: (level: 'debug' | 'warn' | 'error', line: string) => void;
}

interface Connection {
  readonly socket: Socket;
  readonly owner: string;
  readonly record: KeeperRecord;
  unanswered: number;
  pinging: NodeJS.Timeout | undefined;
}

export class KeptProcesses implements ProcessHome {
  readonly #options: KeptProcessesOptions;
  readonly #files: ReturnType<typeof keeperFiles>;
  readonly #children = new Map<string, { readonly child: KeptChild; readonly session: string }>();
  readonly #stopping = new Map<string, () => void>();
  readonly #lent = new Set<string>();
  #store = '';
  #offers: KeptRunOffer[] = [];
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  #state: 'open' | 'leaving' | 'closed' = 'open';

  constructor(options: KeptProcessesOptions) {
    this.#options = options;
    this.#files = keeperFiles(options.stateDir);
  }

  /** Finds the keeper of this state directory or starts one. `store` identifies the store of this hub. */
  async open(store: string): Promise<void> {
    this.#store = store;
    await this.#connected();
  }

  /** Of the keeper, while there is one. */
  get keeperPid(): number | undefined {
    return this.#connection?.record.pid;
  }

  /** The processes of this hub's store that an earlier hub started; each is given to one session. */
  get offers(): readonly KeptRunOffer[] {
    return this.#offers;
  }

  /** Sessions whose processes a keeper ended because no hub came back. Told once. */
  async endedAlone(): Promise<{ readonly afterMs: number; readonly sessions: readonly string[] } | undefined> {
    try {
      const { afterMs, labels } = JSON.parse(await readFile(this.#files.ended, 'utf8')) as EndedRecord;
      await rm(this.#files.ended, { force: true });
      return { afterMs, sessions: labels.flatMap((text) => labelOf(text)?.session ?? []) };
    } catch {
      return undefined;
    }
  }

  /** The process of a session that an earlier hub started, read on after this line of it. Throws if it is gone. */
  take(offer: KeptRunOffer, after: number): KeptChild {
    if (!this.#offers.some(({ run }) => run === offer.run)) throw new Error('the process is gone');
    this.#offers = this.#offers.filter(({ run }) => run !== offer.run);
    const child = new KeptChild(offer.run, this.#wire, offer.pid, after);
    this.#children.set(offer.run, { child, session: offer.label.session });
    this.#send({ t: 'read', run: offer.run, after });
    if (this.#lent.has(offer.run)) this.#tellLent();
    return child;
  }

  /** Ends a process that nobody here continues. */
  async end(offer: KeptRunOffer): Promise<void> {
    this.#offers = this.#offers.filter(({ run }) => run !== offer.run);
    await this.stopRun(offer.run);
  }

  // ── as the driver needs it ─────────────────────────────────────────────────────────────────────────────────────

  prepareAhead(): void {
    // The keeper does.
  }

  async prepare(runId: string, { session, rules = {} }: RunOwner): Promise<Starter> {
    await this.#connected();
    return {
      start: ({ command, args, cwd, env }) => {
        const child = new KeptChild(runId, this.#wire, undefined, 0);
        this.#children.set(runId, { child, session });
        const text = JSON.stringify({ session, store: this.#store, rules } satisfies RunLabel);
        const defined = Object.fromEntries(
          Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
        );
        this.#send({ t: 'spawn', run: runId, label: text, command, args, cwd, env: defined });
        if (this.#lent.has(runId)) this.#tellLent();
        return { child, stdin: child.stdin };
      },
      discard: () => undefined,
    };
  }

  adopt(runId: string): Record<string, string> {
    const { owner } = this.#connection ?? {};
    if (owner === undefined) throw new Error('The keeper of the processes is gone; try again.');
    return markerEnv(owner, runId);
  }

  spawned(): void {
    // Entered into its group by the keeper.
  }

  exited(): void {
    // Noted by the keeper.
  }

  lend(runId: string): void {
    this.#lent.add(runId);
    if (this.#children.has(runId)) this.#tellLent();
  }

  unlend(runId: string): void {
    if (this.#lent.delete(runId)) this.#tellLent();
  }

  extend(ms: number): void {
    this.#send({ t: 'extend', ms: Math.max(0, Math.round(ms)) });
  }

  sessionOfProcess(pid: number): string | undefined {
    for (const { child, session } of this.#children.values())
      if (child.pid === pid && child.exitCode === null) return session;
    return this.#offers.find((offer) => offer.pid === pid)?.label.session;
  }

  sessionOfGroup(cgroup: string): string | undefined {
    for (const { owner, run } of runsInGroups(cgroup)) {
      if (owner !== this.#connection?.owner) continue;
      const session =
        this.#children.get(run)?.session ?? this.#offers.find((offer) => offer.run === run)?.label.session;
      if (session !== undefined) return session;
    }
    return undefined;
  }

  async stopRun(runId: string): Promise<void> {
    if (!this.#connection) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, STOP_MS);
      this.#stopping.set(runId, () => {
        clearTimeout(timer);
        resolve();
      });
      this.#send({ t: 'stop', run: runId });
    });
    this.#stopping.delete(runId);
    this.unlend(runId);
    // Until then the next hub has to learn how it ended.
    void (this.#options.everStored() ?? Promise.resolve()).then(() => {
      this.#children.delete(runId);
      this.#send({ t: 'forget', run: runId });
    });
  }

  async sweep(): Promise<void> {
    await sweepLeftBehind(this.#options.stateDir, (line) => this.#options.log('warn', line));
  }

  /** From now on the processes are left to the next hub. */
  leave(): void {
    if (this.#state === 'open') this.#state = 'leaving';
    for (const { child } of this.#children.values()) child.abandon();
  }

  async release(): Promise<void> {
    if (this.#state === 'closed') return;
    const isLeaving = this.#state === 'leaving';
    this.#state = 'closed';
    await this.#connecting?.catch(() => undefined);
    const connection = this.#connection;
    if (!connection) return;
    clearInterval(connection.pinging);
    const closed = once(connection.socket, 'close');
    this.#send({ t: isLeaving ? 'leave' : 'end' });
    if (isLeaving) connection.socket.end();
    // A hub that refuses to start ends on its own, so nothing may keep it alive once the keeper is gone.
    await Promise.race([closed, pause(STOP_MS, undefined, { ref: false })]);
    connection.socket.destroy();
  }

  // ── the connection ─────────────────────────────────────────────────────────────────────────────────────────────

  readonly #wire: Wire = {
    input: (run, id, bytes) => void this.#connection?.socket.write(inputFrame(run, id, bytes)),
    acknowledge: (run, stored, seen, held) => this.#send({ t: 'ack', run, stored, seen, held }),
    everStored: () => this.#options.everStored(),
  };

  #send(message: FromHub): void {
    this.#connection?.socket.write(messageFrame(message));
  }

  #tellLent(): void {
    this.#send({ t: 'lend', runs: [...this.#lent] });
  }

  async #connected(): Promise<Connection> {
    if (this.#connection) return this.#connection;
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<Connection> {
    const running = await this.#readRecord();
    if (running) {
      try {
        return await this.#attach(running);
      } catch (error) {
        this.#options.log(
          'warn',
          `the keeper of the processes (pid ${String(running.pid)}) does not answer: ${messageOf(error)}`,
        );
        // Nothing else can be done with it, and no process may have two owners.
        await signalIfSame({ pid: running.pid, startTime: running.startTime }, 'SIGKILL');
      }
    }
    await this.#startKeeper();
    for (const deadline = performance.now() + START_MS; performance.now() < deadline; await pause(LOOK_AGAIN_MS)) {
      const record = await this.#readRecord();
      if (record) return this.#attach(record);
    }
    throw new Error('the process that keeps Claude Code running did not start');
  }

  async #startKeeper(): Promise<void> {
    const { program, stateDir, socket, startUnit, env } = this.#options;
    await mkdir(this.#files.directory, { recursive: true, mode: 0o700 });
    await rm(this.#files.record, { force: true });
    if (startUnit && (await startUnit())) return;
    const keeper = spawn(process.execPath, ['--max-semi-space-size=1', program, stateDir, socket], {
      cwd: process.platform === 'win32' ? undefined : '/',
      env: { ...toolEnv(process.platform), ...env },
      // In its own session: no signal of the terminal or to the hub's group reaches it.
      detached: true,
      stdio: 'ignore',
      windowsHide: true,
    });
    keeper.on('error', (error) => this.#options.log('error', `keeper: ${error.message}`));
    keeper.unref();
  }

  /** Undefined if no keeper of this protocol lives. */
  async #readRecord(): Promise<KeeperRecord | undefined> {
    try {
      const record = JSON.parse(await readFile(this.#files.record, 'utf8')) as KeeperRecord;
      const lives = record.boot === thisPlace().boot && record.protocol === KEEPER_PROTOCOL && (await isAlive(record));
      return lives ? record : undefined;
    } catch {
      return undefined;
    }
  }

  async #attach(record: KeeperRecord): Promise<Connection> {
    const secret = (await readFile(this.#files.secret, 'utf8')).trim();
    const socket = connect(record.socket);
    try {
      const connection = await this.#prove(socket, record, secret);
      this.#begin(connection);
      return connection;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  #prove(socket: Socket, record: KeeperRecord, secret: string): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('it did not answer in time')), START_MS);
      let claim: Promise<void> | undefined;
      const done = (act: () => void): void => {
        clearTimeout(timer);
        void claim?.catch(() => undefined);
        act();
      };
      const reader = new FrameReader<FromKeeper>((frame) => {
        if (this.#connection?.socket === socket) return this.#heard(frame);
        if (frame.kind !== 'message') return;
        const { message } = frame;
        if (message.t === 'hello') {
          claim = this.#claim(message.nonce, () => {
            socket.write(messageFrame({ t: 'prove', pid: process.pid, proof: proofOf(secret, message.nonce) }));
            return new Promise((release) => socket.once('claimed', release).once('close', release));
          });
          claim.catch((error: unknown) =>
            done(() => reject(error instanceof Error ? error : new Error(String(error)))),
          );
        } else if (message.t === 'welcome') {
          socket.emit('claimed');
          done(() => {
            const connection: Connection = {
              socket,
              owner: message.owner,
              record,
              unanswered: 0,
              pinging: undefined,
            };
            this.#connection = connection;
            this.#offers = message.runs.flatMap((state): KeptRunOffer[] => {
              const label = labelOf(state.label);
              const isOurs = label?.store === this.#store && !this.#children.has(state.run);
              return label && isOurs ? [{ ...state, label }] : [];
            });
            resolve(connection);
          });
        } else if (message.t === 'refused') done(() => reject(new Error(`it refused: ${message.why}`)));
      });
      socket.on('data', (chunk: Buffer) => {
        try {
          reader.take(chunk);
        } catch (error) {
          this.#options.log('error', `keeper: ${messageOf(error)}`);
          socket.destroy();
        }
      });
      socket.once('error', (error) => done(() => reject(error)));
      socket.once('close', () => {
        done(() => reject(new Error('it closed the connection')));
        this.#lost(socket);
      });
    });
  }

  /** Held open while the keeper looks: only this process can. */
  async #claim(nonce: string, whileHeld: () => Promise<void>): Promise<void> {
    const file = this.#files.claim(nonce);
    const handle = await open(file, 'wx', 0o600);
    try {
      await whileHeld();
    } finally {
      await handle.close();
      await rm(file, { force: true });
    }
  }

  #begin(connection: Connection): void {
    this.#send({ t: 'keep', ms: this.#options.keepMs });
    if (this.#lent.size > 0) this.#tellLent();
    connection.pinging = setInterval(() => {
      if (connection.unanswered >= MAX_UNANSWERED) {
        this.#options.log('error', 'the keeper of the processes hangs; it is ended, and the processes with it');
        void signalIfSame({ pid: connection.record.pid, startTime: connection.record.startTime }, 'SIGKILL');
        connection.socket.destroy();
      } else {
        connection.unanswered++;
        this.#send({ t: 'ping' });
      }
    }, PING_EVERY_MS);
    connection.pinging.unref();
  }

  /** The keeper died, and its watchdog ends what it held. Requests stay open; the next start gets a new keeper. */
  #lost(socket: Socket): void {
    const connection = this.#connection;
    if (connection?.socket !== socket) return;
    clearInterval(connection.pinging);
    this.#connection = undefined;
    this.#offers = [];
    if (this.#state !== 'open') return;
    this.#options.log(
      'error',
      'the keeper of the processes is gone, and Claude Code with it; sessions can be continued',
    );
    for (const settle of this.#stopping.values()) settle();
    for (const [run, { child }] of this.#children) {
      this.#children.delete(run);
      child.ended({ code: null, signal: 'SIGKILL' });
    }
  }

  #heard(frame: Frame<FromKeeper>): void {
    if (this.#connection) this.#connection.unanswered = 0;
    if (frame.kind === 'line') return this.#children.get(frame.run)?.child.line(frame.line, frame.bytes);
    if (frame.kind !== 'message') return;
    const { message } = frame;
    switch (message.t) {
      case 'spawned':
        return this.#children.get(message.run)?.child.spawned(message.pid);
      case 'failed':
        return this.#children.get(message.run)?.child.failed(message.message, message.code);
      case 'stderr':
        return void this.#children.get(message.run)?.child.stderr.write(message.text);
      case 'exit':
        return this.#children.get(message.run)?.child.ended(message.exit);
      case 'stopped':
        return this.#stopping.get(message.run)?.();
      case 'warn':
        return this.#options.log('warn', message.line);
      case 'hello':
      case 'welcome':
      case 'refused':
      case 'pong':
        return;
    }
  }
}

function labelOf(text: string): RunLabel | undefined {
  try {
    const label = JSON.parse(text) as Partial<RunLabel>;
    const { session, store, rules } = label;
    return session !== undefined && store !== undefined && rules ? { session, store, rules } : undefined;
  } catch {
    return undefined;
  }
}

/** A name for a keeper's socket beside the hub's. Keepers of different protocols run side by side. */
export function keeperSocket(hubSocket: string): string {
  return hubSocket.startsWith('\\\\')
    ? `${hubSocket}-keeper-${randomBytes(4).toString('hex')}`
    : hubSocket.replace(/hub\.sock$/, `kept-${String(KEEPER_PROTOCOL)}.sock`);
}

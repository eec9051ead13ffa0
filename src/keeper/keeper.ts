/**
 * The keeper: a process of its own that starts Claude Code for a hub and owns its pipes, so that nothing stops when the
 * hub does. It knows nothing about sessions, requests or the SDK. Built into one file without dependencies.
 */

import { randomBytes } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { cgroupOf, PARENT_VARIABLE, variableOf, withAncestors } from '../platform/ancestors.ts';
import { thisPlace } from '../platform/owner-records.ts';
import { startTimeOf } from '../platform/processes.ts';
import { ProcessOwner } from '../platform/process-owner.ts';
import {
  FrameReader,
  isProof,
  KEEPER_PROTOCOL,
  keeperFiles,
  lineFrame,
  messageFrame,
  type EndedRecord,
  type Frame,
  type FromHub,
  type FromKeeper,
  type KeeperRecord,
} from './protocol.ts';
import { KeptRun, type RunReader } from './run.ts';

const PROVE_WITHIN_MS = 5_000;
const DEFAULT_KEEP_MS = 15 * 60_000;
const LOOK_EVERY_MS = 1_000;

type Proof = Extract<FromHub, { t: 'prove' }>;

export interface KeeperOptions {
  readonly stateDir: string;
  readonly socket: string;
}

/** A clock that also counts while the machine sleeps. */
const uptimeMs = (): number => os.uptime() * 1000;

export class Keeper {
  readonly #options: KeeperOptions;
  readonly #files: ReturnType<typeof keeperFiles>;
  readonly #owner: ProcessOwner;
  readonly #runs = new Map<string, KeptRun>();
  /** What was said to runs that are just being started. */
  readonly #early = new Map<string, Frame<FromHub>[]>();
  readonly #starting = new Set<Promise<void>>();
  readonly #secret = randomBytes(32).toString('hex');
  readonly #server: Server;
  readonly #looking: NodeJS.Timeout;
  #hub: Socket | undefined;
  #hubPid = 0;
  #keepMs = DEFAULT_KEEP_MS;
  /** Since when there has been no hub. */
  #aloneSince: number | undefined = uptimeMs();
  #lent: ReadonlySet<string> = new Set();
  #lentUntil = 0;
  #ending: Promise<void> | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#files = keeperFiles(options.stateDir);
    this.#owner = new ProcessOwner({ stateDir: options.stateDir, warn: (line) => this.#tell({ t: 'warn', line }) });
    this.#server = createServer((socket) => this.#connected(socket));
    this.#looking = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  /** Resolves when hubs can find it. */
  async listen(): Promise<void> {
    const { socket } = this.#options;
    mkdirSync(this.#files.directory, { recursive: true, mode: 0o700 });
    if (process.platform !== 'win32') {
      mkdirSync(path.dirname(socket), { recursive: true, mode: 0o700 });
      rmSync(socket, { force: true });
    }
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(socket, resolve);
    });
    writePrivately(this.#files.secret, `${this.#secret}\n`);
    const record: KeeperRecord = {
      pid: process.pid,
      startTime: (await startTimeOf(process.pid)) ?? '',
      boot: thisPlace().boot,
      socket,
      protocol: KEEPER_PROTOCOL,
    };
    writePrivately(this.#files.record, `${JSON.stringify(record)}\n`);
  }

  // ── who speaks ─────────────────────────────────────────────────────────────────────────────────────────────────

  #connected(socket: Socket): void {
    const nonce = randomBytes(16).toString('hex');
    const timer = setTimeout(() => socket.destroy(), PROVE_WITHIN_MS);
    const reader = new FrameReader<FromHub>((frame) => {
      if (this.#hub === socket) return this.#heard(frame);
      clearTimeout(timer);
      const proof = frame.kind === 'message' && frame.message.t === 'prove' ? frame.message : undefined;
      // What it is asked about may be gone, such as the directory with the locks.
      this.#admit(socket, proof, nonce).catch(() => socket.destroy());
    });
    socket.on('data', (chunk: Buffer) => {
      try {
        reader.take(chunk);
      } catch {
        socket.destroy();
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      if (this.#hub === socket) this.#lostHub('died');
    });
    socket.write(messageFrame({ t: 'hello', protocol: KEEPER_PROTOCOL, nonce }));
  }

  /**
   * Why this peer is not the hub. Anything that runs as this user can read the secret; on Linux it must also be the
   * process that holds the hub's instance lock, and no descendant of a session. Locks are files, which a session could
   * write too: while the hub that is connected lives, nobody else can hold the real one.
   */
  #refusal({ pid, proof }: Proof, nonce: string): string | undefined {
    if (!isProof(proof, this.#secret, nonce)) return 'it does not know the secret';
    if (process.platform !== 'linux') return undefined;
    if (!holdsOpen(pid, realClaim(this.#files, nonce))) return 'it is not the process that it says it is';
    if (!lockHolders(this.#files.directory).includes(pid)) return 'it does not hold the lock of the hub';
    if (this.#hub && this.#hubPid !== pid && isThere(this.#hubPid)) return 'another hub is connected';
    if (this.#owner.sessionOfGroup(cgroupOf(pid)) !== undefined) return 'it runs inside a session';
    const own = new Set([...this.#runs.values()].map((run) => run.pid));
    for (const one of withAncestors(pid))
      if (own.has(one) || variableOf(one, PARENT_VARIABLE) !== undefined) return 'it runs inside a session';
    return undefined;
  }

  async #admit(socket: Socket, proof: Proof | undefined, nonce: string): Promise<void> {
    let why = proof ? this.#refusal(proof, nonce) : 'prove first';
    // What the last hub began to start is there for the next one: not knowing of it, it would start the session again.
    while (proof && why === undefined && this.#starting.size > 0) {
      await Promise.allSettled(this.#starting);
      why = this.#refusal(proof, nonce);
    }
    if (socket.destroyed) return;
    if (proof && why === undefined) this.#welcome(socket, proof.pid);
    else socket.end(messageFrame({ t: 'refused', why: why ?? 'prove first' }));
  }

  #welcome(socket: Socket, pid: number): void {
    const displaced = this.#hub;
    if (displaced) {
      this.#lostHub('left');
      displaced.destroy();
    }
    this.#hub = socket;
    this.#hubPid = pid;
    this.#aloneSince = undefined;
    this.#tell({ t: 'welcome', owner: this.#owner.id, runs: [...this.#runs.values()].map(({ state }) => state) });
  }

  #lostHub(how: 'left' | 'died'): void {
    this.#hub = undefined;
    this.#aloneSince = uptimeMs();
    for (const run of this.#runs.values()) run.unread(how);
  }

  /** What is read together goes out together. */
  #pass(frame: Buffer): void {
    const hub = this.#hub;
    if (!hub) return;
    if (hub.writableCorked === 0) {
      hub.cork();
      process.nextTick(() => hub.uncork());
    }
    hub.write(frame);
  }

  #tell(message: FromKeeper): void {
    this.#hub?.write(messageFrame(message));
  }

  // ── what is said ───────────────────────────────────────────────────────────────────────────────────────────────

  #heard(frame: Frame<FromHub>): void {
    const run = frame.kind === 'message' ? ('run' in frame.message ? frame.message.run : undefined) : frame.run;
    const early = run === undefined ? undefined : this.#early.get(run);
    if (early) early.push(frame);
    else this.#act(frame);
  }

  #act(frame: Frame<FromHub>): void {
    if (frame.kind === 'input') {
      if (!this.#endsIfOverdue(frame.run)) this.#runs.get(frame.run)?.write(frame.id, frame.bytes);
    } else if (frame.kind === 'message') this.#carryOut(frame.message);
  }

  #carryOut(message: FromHub): void {
    switch (message.t) {
      case 'prove':
        return;
      case 'spawn':
        return this.#begin(message);
      case 'read':
        return this.#runs.get(message.run)?.read(message.after, this.#reader);
      case 'ack':
        return this.#runs.get(message.run)?.acknowledge(message.stored, message.seen, message.held);
      case 'stop':
        return void this.#stop(message.run).then(() => this.#tell({ t: 'stopped', run: message.run }));
      case 'forget':
        if (this.#runs.get(message.run)?.isGone === true) this.#runs.delete(message.run);
        return;
      case 'lend':
        return this.#lend(message.runs);
      case 'extend':
        this.#lentUntil = uptimeMs() + message.ms;
        return this.#owner.extend(message.ms);
      case 'keep':
        this.#keepMs = message.ms;
        return;
      case 'ping':
        return this.#tell({ t: 'pong' });
      case 'leave':
        return this.#lostHub('left');
      case 'end':
        return void this.end();
    }
  }

  readonly #reader: RunReader = {
    line: (run, line, bytes) => {
      if (!this.#endsIfOverdue(run)) this.#pass(lineFrame(run, line, bytes));
    },
    stderr: (run, text) => this.#tell({ t: 'stderr', run, text }),
    exit: (run, exit) => this.#tell({ t: 'exit', run, exit }),
  };

  #begin(message: Extract<FromHub, { t: 'spawn' }>): void {
    const started = this.#spawn(message).finally(() => this.#starting.delete(started));
    this.#starting.add(started);
  }

  async #spawn({ run, label, command, args, cwd, env }: Extract<FromHub, { t: 'spawn' }>): Promise<void> {
    const marked = { ...env, ...this.#owner.adopt(run, label) };
    this.#early.set(run, []);
    const preparation = await this.#owner.prepare();
    try {
      const held = preparation.start({ command, args, cwd, env: marked });
      const { child } = held;
      if (child.pid === undefined) {
        child.once('error', (error: NodeJS.ErrnoException) => {
          this.#tell({ t: 'failed', run, code: error.code, message: error.message });
        });
        return;
      }
      child.on('error', () => undefined);
      this.#owner.spawned(run, child.pid);
      child.once('exit', () => this.#owner.exited(run));
      const kept = new KeptRun(run, label, held);
      this.#runs.set(run, kept);
      this.#tell({ t: 'spawned', run, pid: child.pid });
      if (this.#hub) kept.read(0, this.#reader);
    } catch (error) {
      preparation.discard();
      this.#tell({ t: 'failed', run, message: error instanceof Error ? error.message : String(error) });
    } finally {
      const early = this.#early.get(run) ?? [];
      this.#early.delete(run);
      for (const frame of early) this.#act(frame);
      this.#owner.prepareAhead();
    }
  }

  #stop(run: string): Promise<void> {
    return this.#owner.stopRun(run, this.#runs.get(run)?.pid);
  }

  #lend(runs: readonly string[]): void {
    const next = new Set(runs);
    for (const run of this.#lent) if (!next.has(run)) this.#owner.unlend(run);
    for (const run of next) if (!this.#lent.has(run)) this.#owner.lend(run);
    this.#lent = next;
  }

  /** Another hub may run its session by now: nothing of this run passes any more. */
  #endsIfOverdue(run: string): boolean {
    if (!this.#lent.has(run) || uptimeMs() < this.#lentUntil) return false;
    void this.#stop(run);
    return true;
  }

  // ── alone ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #look(): void {
    for (const run of this.#lent) this.#endsIfOverdue(run);
    if (this.#aloneSince === undefined) return;
    const aloneMs = uptimeMs() - this.#aloneSince;
    const isUseless =
      [...this.#runs.values()].every(({ isGone }) => isGone) && aloneMs > Math.min(this.#keepMs, 30_000);
    if (aloneMs < this.#keepMs && !isUseless && this.#isFound()) return;
    void this.end(aloneMs);
  }

  /** Without its record no hub can ever find it. */
  #isFound(): boolean {
    try {
      return statSync(this.#files.record).isFile();
    } catch {
      return false;
    }
  }

  /** Something that should not happen; what is kept goes on. */
  warn(line: string): void {
    this.#tell({ t: 'warn', line });
  }

  /** Ends every process, then itself. `aloneMs`: because no hub came. */
  end(aloneMs?: number): Promise<void> {
    return (this.#ending ??= this.#end(aloneMs));
  }

  async #end(aloneMs: number | undefined): Promise<void> {
    clearInterval(this.#looking);
    await Promise.all(this.#starting);
    const labels = [...this.#runs.values()].filter(({ isGone }) => !isGone).map(({ label }) => label);
    await Promise.all([...this.#runs.keys()].map((run) => this.#stop(run)));
    await this.#owner.release();
    if (aloneMs !== undefined && labels.length > 0) {
      const record: EndedRecord = { at: Date.now(), afterMs: Math.round(aloneMs), labels };
      tryTo(() => writePrivately(this.#files.ended, `${JSON.stringify(record)}\n`));
    }
    for (const file of [this.#files.record, this.#files.secret]) tryTo(() => rmSync(file, { force: true }));
    this.#server.close();
    this.#hub?.end();
    setTimeout(() => process.exit(0), 100);
  }
}

/** As the kernel shows it. */
function realClaim({ directory, claim }: ReturnType<typeof keeperFiles>, nonce: string): string {
  return path.join(realpathSync(directory), path.basename(claim(nonce)));
}

/** The processes that hold a lock of the hub's instance; see session-lock.ts. */
function lockHolders(directory: string): number[] {
  return readdirSync(directory).flatMap((name) => {
    if (!/^instance\.\d+\.lock$/.test(name)) return [];
    try {
      const { pid } = JSON.parse(readFileSync(path.join(directory, name), 'utf8')) as { pid?: number };
      return pid === undefined ? [] : [pid];
    } catch {
      return [];
    }
  });
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function holdsOpen(pid: number, file: string): boolean {
  const directory = `/proc/${String(pid)}/fd`;
  try {
    return readdirSync(directory).some((fd) => {
      try {
        return readlinkSync(path.join(directory, fd)) === file;
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}

/** Never seen half-written, and by nobody else. */
function writePrivately(file: string, text: string): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
}

function tryTo(act: () => void): void {
  try {
    act();
  } catch {
    // The state directory may be gone, or the disk full.
  }
}

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Transform, type TransformCallback } from 'node:stream';
import type { SpawnedProcess, SpawnOptions } from '@anthropic-ai/claude-agent-sdk';
import { PARENT_VARIABLE } from '../platform/ancestors.ts';
import type {
  HeldChild,
  OutputPosition,
  ProcessHome,
  RunOwner,
  StartedChild,
  Starter,
} from '../platform/process-home.ts';

/** How long a process may take to exit after its message stream ended, before it is killed. */
const EXIT_GRACE_MS = 2_000;

/** The OS side of a Claude Code process: its markers, its last stderr lines, its exit. */
export class AgentChild {
  readonly runId: string;
  readonly #owner: ProcessHome;
  readonly #stderr = new StderrTail();
  /** Resolves when there is a process. */
  readonly spawned: Promise<void>;
  #markSpawned: () => void = () => undefined;
  #child: HeldChild | undefined;
  #stopping: Promise<void> | undefined;
  #isTalking = true;

  readonly #starter: Starter;

  static async prepare(owner: ProcessHome, whose: RunOwner): Promise<AgentChild> {
    const runId = randomUUID();
    return new AgentChild(owner, runId, await owner.prepare(runId, whose));
  }

  /** Takes over a process that runs already, when the SDK listens: it would wait forever for an exit that it missed. */
  static adopted(owner: ProcessHome, run: string, take: () => StartedChild): AgentChild {
    return new AgentChild(owner, run, { start: take, discard: () => undefined });
  }

  private constructor(owner: ProcessHome, runId: string, starter: Starter) {
    this.#owner = owner;
    this.runId = runId;
    this.#starter = starter;
    this.spawned = new Promise((resolve) => (this.#markSpawned = resolve));
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get alive(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  /** Where it stands in its output, if that outlives this server. */
  get position(): OutputPosition | undefined {
    return this.#child?.position;
  }

  /** The number of the line that a message came in, if lines are numbered. */
  takeLine(message: object): number | undefined {
    return this.#child?.takeLine?.(message);
  }

  processed(line: number): void {
    this.#child?.processed?.(line);
  }

  /** Whether it can still say anything: what ends after its output does not end because it said so. */
  get isTalking(): boolean {
    return this.#isTalking && this.alive;
  }

  get stderr(): string {
    return this.#stderr.lines();
  }

  environment(env: Readonly<Record<string, string>>, sessionId: string): Record<string, string> {
    return {
      ...env,
      ...this.#owner.adopt(this.runId, sessionId),
      [PARENT_VARIABLE]: sessionId,
      // The only authoritative signal that Claude Code is at rest.
      CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
    };
  }

  spawn({ command, args, cwd, env }: SpawnOptions): SpawnedProcess {
    const { child, stdin } = this.#starter.start({ command, args, cwd, env });
    this.#child = child;
    this.#markSpawned();
    if (child.pid !== undefined) this.#owner.spawned(this.runId, child.pid);
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stderr.add(chunk);
    });
    // A process that dies while being written to; its end is reported by its exit.
    stdin.on('error', () => undefined);
    child.once('exit', () => this.#owner.exited(this.runId));
    child.on('error', (error: Error) => {
      this.#stderr.add(error.message);
    });
    // The SDK (0.3.325) waits for the exit of a process that will never say anything again; remove this when it no
    // longer does.
    child.stdout.once('end', () => {
      this.#isTalking = false;
      setTimeout(() => void this.stop(), EXIT_GRACE_MS).unref();
    });
    return asTheSdkSeesIt({ child, stdin }, (text) => this.#stderr.add(text));
  }

  /** Ends the process and everything it started. Idempotent, and safe to call at any time. */
  stop(): Promise<void> {
    this.#starter.discard();
    return (this.#stopping ??= this.#owner.stopRun(this.runId, this.pid));
  }

  /** How it ended. The SDK's stream can end before the process has: then the tree is ended, so that nothing lingers. */
  async end(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    const child = this.#child;
    if (!child) return { code: null, signal: null };
    if (child.pid !== undefined && this.alive) {
      const patience = AbortSignal.timeout(EXIT_GRACE_MS);
      await once(child, 'exit', { signal: patience }).catch(() => undefined);
    }
    await this.stop();
    return { code: child.exitCode, signal: child.signalCode };
  }
}

/** With only objects on its output. */
function asTheSdkSeesIt({ child, stdin }: StartedChild, stray: (text: string) => void): SpawnedProcess {
  const stdout = child.stdout.pipe(new ObjectLines(stray));
  return new Proxy(child as unknown as SpawnedProcess, {
    get(_child, name) {
      if (name === 'stdout') return stdout;
      if (name === 'stdin') return stdin;
      const value: unknown = Reflect.get(child, name);
      return typeof value === 'function' ? (value.bind(child) as unknown) : value;
    },
  });
}

const MAX_CHARS = 8_000;
const MAX_LINES = 12;

/** What looks like a secret in a program's stderr. */
const SECRETS = [
  /\bsk-[A-Za-z0-9_-]{8,}/g,
  /\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\b([A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?))(\s*[=:]\s*)\S+/gi,
  /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g,
];

export function redact(text: string): string {
  let redacted = text;
  for (const secret of SECRETS) {
    redacted = redacted.replace(secret, (match, name?: unknown, sign?: unknown) =>
      typeof name === 'string' && typeof sign === 'string'
        ? `${name}${sign}***`
        : match.startsWith('Bearer')
          ? 'Bearer ***'
          : '***',
    );
  }
  return redacted;
}

/** The last lines a process wrote to stderr, bounded however much it writes. */
class StderrTail {
  #text = '';

  add(chunk: string): void {
    this.#text = (this.#text + chunk).slice(-MAX_CHARS);
  }

  lines(): string {
    return redact(this.#text.trim().split('\n').slice(-MAX_LINES).join('\n'));
  }
}

const NEWLINE = 0x0a;
const OPENING_BRACE = 0x7b;
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/**
 * Passes on the lines that start an object; anything else a program prints is reported as `stray`. The SDK (0.3.325)
 * skips what is not JSON, but a line `null` ends its stream, and with it the session; can go when that is fixed. Works
 * on pieces of lines: one line may be tens of megabytes long.
 */
class ObjectLines extends Transform {
  readonly #stray: (text: string) => void;
  #line: 'beginning' | 'object' | 'stray' = 'beginning';

  constructor(stray: (text: string) => void) {
    super();
    this.#stray = stray;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (let from = 0; from < chunk.length;) {
      const newline = chunk.indexOf(NEWLINE, from);
      const to = newline < 0 ? chunk.length : newline + 1;
      this.#take(chunk.subarray(from, to));
      if (newline >= 0) this.#line = 'beginning';
      from = to;
    }
    done();
  }

  #take(piece: Buffer): void {
    if (this.#line === 'beginning') {
      const first = piece.find((byte) => !BLANKS.has(byte));
      if (first === undefined || first === NEWLINE) return;
      this.#line = first === OPENING_BRACE ? 'object' : 'stray';
    }
    if (this.#line === 'object') this.push(piece);
    else this.#stray(piece.toString('utf8'));
  }
}

import { execFile } from 'node:child_process';
import { readFile, readFileSync, readdir } from 'node:fs';
import { posix } from 'node:path';

/** Environment variables that every process of a session inherits; the only proof that a process is ours. */
export const OWNER_MARKER = 'CLAUDE_CODE_MCP_OWNER';
export const RUN_MARKER = 'CLAUDE_CODE_MCP_SESSION';

/**
 * `$0` of the watchdog: tells it apart from a session's processes on macOS, where its environment cannot be read. Not
 * the product's name: whoever ends everything of that name must not end what cleans up afterwards.
 */
export const WATCHDOG_NAME = 'ccmcp-session-watchdog';

/** Ids travel through file names, a shell script and `ps` output, none of which quote. */
const PLAIN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{7,127}$/;

export function isPlainId(id: string): boolean {
  return PLAIN_ID.test(id);
}

/** Variables to merge into a session's environment. Ids must never be reused: create them with `randomUUID()`. */
export function markerEnv(ownerId: string, runId: string): Record<string, string> {
  for (const id of [ownerId, runId]) {
    if (!isPlainId(id)) throw new TypeError(`Not usable as a process marker: ${JSON.stringify(id)}`);
  }
  return { [OWNER_MARKER]: ownerId, [RUN_MARKER]: runId };
}

/** What this folder needs from the operating system; replaced in tests. */
export interface System {
  readonly platform: NodeJS.Platform;
  /** This process: never found, never signalled. A nested server carries the marker of the outer one. */
  readonly pid: number;
  /** Linux: the names in /proc that are pids. This and the next two fail when the system cannot answer (no more files). */
  pids(): Promise<number[]>;
  /** Linux: the raw environment block; undefined if the process is gone or belongs to another user. */
  environ(pid: number): Promise<Buffer | undefined>;
  /** Linux: the line of /proc/<pid>/stat. Synchronous, so that nothing happens between this check and a signal. */
  stat(pid: number): string | undefined;
  /** Linux: the directory of this process's cgroup (v2); undefined if there is none. */
  ownGroup(): string | undefined;
  /** The output of a command, whatever its exit code; rejects when it could not run. */
  run(file: string, args: readonly string[]): Promise<string>;
  /** False if there is no such process or it may not be signalled. */
  kill(pid: number, signal: NodeJS.Signals): boolean;
}

/** Fixed, so that what we run does not depend on the user's shell setup; the last entry is for NixOS. */
const TOOL_PATH = '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/current-system/sw/bin';

/** On Windows libuv adds PATH, SYSTEMROOT and the like. C and UTC make `ps` print comparable dates. */
export function toolEnv(platform: NodeJS.Platform): Record<string, string> {
  return platform === 'win32' ? {} : { PATH: TOOL_PATH, LC_ALL: 'C', TZ: 'UTC' };
}

const COMMAND_TIMEOUT_MS = 10_000;
const COMMAND_MAX_BYTES = 64 * 1024 * 1024;

/** Gone, or not ours; anything else (such as no more file descriptors) says nothing about the process. */
function isAnswer(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES' || code === 'EPERM';
}

export const thisSystem: System = {
  platform: process.platform,
  pid: process.pid,

  pids: () =>
    new Promise((resolve, reject) => {
      readdir('/proc', (error, names) => {
        if (error) reject(error);
        else resolve(names.filter((name) => /^\d+$/.test(name)).map(Number));
      });
    }),

  environ: (pid) =>
    new Promise((resolve, reject) => {
      readFile(`/proc/${pid}/environ`, (error, block) => {
        if (error && !isAnswer(error)) reject(error);
        else resolve(error ? undefined : block);
      });
    }),

  stat(pid) {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'latin1');
    } catch (error) {
      if (isAnswer(error)) return undefined;
      throw error;
    }
  },

  ownGroup() {
    try {
      const [cgroup, mountinfo] = ['cgroup', 'mountinfo'].map((name) => readFileSync(`/proc/self/${name}`, 'utf8'));
      return ownGroupDirectory(cgroup ?? '', mountinfo ?? '');
    } catch {
      return undefined;
    }
  },

  run: (file, args) =>
    new Promise((resolve, reject) => {
      const options = {
        env: toolEnv(process.platform),
        timeout: COMMAND_TIMEOUT_MS,
        killSignal: 'SIGKILL' as const,
        maxBuffer: COMMAND_MAX_BYTES,
        windowsHide: true,
      };
      execFile(file, args, options, (error, stdout) => {
        // `ps -p` and `taskkill` answer "no such process" with an exit code.
        if (error && typeof error.code !== 'number') reject(new Error(`${file}: ${error.message}`, { cause: error }));
        else resolve(stdout);
      });
    }),

  kill(pid, signal) {
    try {
      return process.kill(pid, signal);
    } catch {
      return false;
    }
  },
};

/**
 * The directory of a process's cgroup in the cgroup v2 hierarchy, from its /proc/<pid>/cgroup and mountinfo. Undefined
 * if the hierarchy is not mounted or its mount does not show this cgroup.
 */
export function ownGroupDirectory(cgroup: string, mountinfo: string): string | undefined {
  const path = /^0::(\/.*)$/m.exec(cgroup)?.[1];
  if (path === undefined) return undefined;
  for (const line of mountinfo.split('\n')) {
    // 31 23 0:28 <root> <mount point> <options> [tags…] - <type> <source> <options>
    const [left = '', right = ''] = line.split(' - ', 2);
    const [, , , root, mountPoint] = left.split(' ').map(unescaped);
    if (!right.startsWith('cgroup2 ') || root === undefined || mountPoint === undefined) continue;
    const below = posix.relative(root, path);
    // A newline would end the line that passes it to the watchdog.
    if (!below.startsWith('..') && !/[\n\r]/.test(mountPoint + below)) return posix.join(mountPoint, below);
  }
  return undefined;
}

/** The kernel escapes spaces and the like as octal numbers. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

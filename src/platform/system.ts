import { execFile } from 'node:child_process';
import { readFile, readFileSync, readdir } from 'node:fs';
import { ownGroupDirectory } from './own-group.ts';

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
export const TOOL_PATH = '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/current-system/sw/bin';

/** On Windows libuv adds PATH, SYSTEMROOT and the like. C and UTC make `ps` print comparable dates. */
export function toolEnv(platform: NodeJS.Platform, path: string = TOOL_PATH): Record<string, string> {
  return platform === 'win32' ? {} : { PATH: path, LC_ALL: 'C', TZ: 'UTC' };
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

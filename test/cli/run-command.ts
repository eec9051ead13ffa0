/** The built command as a child process. */

import { spawn } from 'node:child_process';
import { builtServer } from '../harness/built-server.ts';

export interface CommandRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandSetup {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
}

export function runCommand(args: readonly string[], { env, cwd, input = '' }: CommandSetup): Promise<CommandRun> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [builtServer(), ...args], { env, cwd, stdio: 'pipe' });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (stdout += piece));
    child.stderr.setEncoding('utf8').on('data', (piece: string) => (stderr += piece));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** Runs the programs of an interop run: clients, npm, the command itself. */

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { NODE_24, type Client } from './clients.ts';

const TIMEOUT_MS = 180_000;

export interface Program {
  file: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  timeoutMs?: number;
}

export function runProgram({
  file,
  args,
  cwd,
  env,
  timeoutMs = TIMEOUT_MS,
}: Program): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    child.on('error', (error) => (output += error.message));
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}

/** The clients, each in its own directory below `base`, or below `INTEROP_CACHE`, which is kept. */
export class Installations {
  readonly #base: string;
  readonly #root: string;

  constructor(base: string, root: string) {
    this.#base = process.env['INTEROP_CACHE'] ?? base;
    this.#root = root;
  }

  /** The client's directory; for Claude Code, the executable itself. */
  async of(client: Client): Promise<string> {
    return client.package === undefined ? this.#bundledClaude() : this.#package(client.package, client.alongside);
  }

  async nodeFor({ node }: Client): Promise<string> {
    if (node === undefined) return process.execPath;
    return path.join(await this.#package(`node@${NODE_24}`), 'node_modules/node/bin/node');
  }

  versionOf(client: Client): string {
    if (client.package !== undefined) return client.package.slice(client.package.lastIndexOf('@') + 1);
    const file = path.join(path.dirname(this.#sdk()), 'package.json');
    const { claudeCodeVersion = '' } = JSON.parse(readFileSync(file, 'utf8')) as { claudeCodeVersion?: string };
    return claudeCodeVersion;
  }

  #bundledClaude(): string {
    const name = `claude-agent-sdk-${process.platform}-${process.arch}`;
    const executable = process.platform === 'win32' ? 'claude.exe' : 'claude';
    return path.join(path.dirname(this.#sdk()), '..', name, executable);
  }

  #sdk(): string {
    return createRequire(path.join(this.#root, 'package.json')).resolve('@anthropic-ai/claude-agent-sdk');
  }

  async #package(name: string, alongside: readonly string[] = []): Promise<string> {
    const dir = path.join(this.#base, name.replaceAll(/[^a-z0-9.]/gi, '_'));
    if (existsSync(path.join(dir, 'node_modules'))) return dir;
    mkdirSync(dir, { recursive: true });
    writeFileSync(path.join(dir, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    const { code, output } = await runProgram({
      file: 'npm',
      args: ['install', '--no-audit', '--no-fund', '--save-exact', name, ...alongside],
      cwd: dir,
      env: { PATH: process.env['PATH'] ?? '', HOME: os.homedir() },
      timeoutMs: 300_000,
    });
    if (code !== 0) throw new Error(`npm install ${name}: ${output.slice(-300)}`);
    return dir;
  }
}

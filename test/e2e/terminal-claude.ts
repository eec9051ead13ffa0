/** Claude Code as a person starts it in a terminal: the bundled command itself, without this server. */

import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { SHORT_LIFE } from '../harness/isolated-home.ts';
import type { Harness } from '../harness/open-harness.ts';

export interface TerminalOptions {
  readonly cwd?: string;
  /** Resumes this session. */
  readonly resume?: string;
}

/** Runs one prompt to its end, and returns the id of the session. */
export async function runInTerminal(h: Harness, prompt: string, options: TerminalOptions = {}): Promise<string> {
  const { sessionId, args } = identity(options);
  const child = startClaude(h, ['-p', prompt, ...args], options);
  child.stdin?.end();
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`Claude Code ended with ${code}`);
  return sessionId;
}

export interface OpenTerminal {
  readonly sessionId: string;
  readonly pid: number;
  close(): Promise<void>;
}

/** A conversation that stays open after its first answer. */
export async function openTerminal(h: Harness, prompt: string, options: TerminalOptions = {}): Promise<OpenTerminal> {
  const { sessionId, args } = identity(options);
  const streaming = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'];
  const child = startClaude(h, ['-p', ...streaming, ...args], options);
  const message = { type: 'user', message: { role: 'user', content: prompt }, parent_tool_use_id: null };
  child.stdin?.write(`${JSON.stringify(message)}\n`);
  let said = '';
  for await (const chunk of child.stdout ?? []) {
    said += String(chunk);
    if (said.includes('"type":"result"')) break;
  }
  const exited = once(child, 'exit');
  return {
    sessionId,
    pid: child.pid ?? 0,
    async close() {
      child.stdin?.end();
      await exited;
    },
  };
}

function identity({ resume }: TerminalOptions): { sessionId: string; args: string[] } {
  const sessionId = resume ?? randomUUID();
  return { sessionId, args: [resume === undefined ? '--session-id' : '--resume', sessionId] };
}

function startClaude(h: Harness, args: string[], { cwd = h.project }: TerminalOptions): ChildProcess {
  const child = spawn(bundledClaude(), args, {
    cwd,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      PATH: process.env['PATH'],
      HOME: h.home,
      CLAUDE_CONFIG_DIR: h.configDir,
      TMPDIR: path.join(path.dirname(h.home), 'tmp'),
      ...SHORT_LIFE,
      ...h.model.env(),
    },
  });
  // Leaving the loop over stdout destroys the stream, which may then report an error.
  child.stdout?.on('error', () => undefined);
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

function bundledClaude(): string {
  const packageName = `@anthropic-ai/claude-agent-sdk-${process.platform}-${process.arch}`;
  const fromSdk = createRequire(createRequire(import.meta.url).resolve('@anthropic-ai/claude-agent-sdk'));
  const directory = path.dirname(fromSdk.resolve(`${packageName}/package.json`));
  return path.join(directory, process.platform === 'win32' ? 'claude.exe' : 'claude');
}

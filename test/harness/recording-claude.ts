/** The bundled Claude Code behind a wrapper that records how it was started and what it was sent. */

import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Json } from './json.ts';

export interface RecordedStart {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** The messages received on stdin so far, starting with the initialize request. */
  input(): Json[];
}

export interface RecordingClaude {
  /** For `pathToClaudeCodeExecutable`. */
  readonly path: string;
  /** Oldest first. */
  starts(): RecordedStart[];
}

/** Written to `directory`, next to its records. */
export async function recordingClaude(directory: string): Promise<RecordingClaude> {
  const records = join(directory, 'records');
  await mkdir(records, { recursive: true });
  const path = join(directory, 'recording-claude.mjs');
  await writeFile(path, programText(bundledClaude(), records));
  return {
    path,
    starts: () =>
      readdirSync(records)
        .filter((name) => name.endsWith(START_ENDING))
        .sort()
        .map((name) => readStart(join(records, name))),
  };
}

/** The program that the Agent SDK bundles for this machine. */
export function bundledClaude(): string {
  const sdk = createRequire(createRequire(import.meta.url).resolve('@anthropic-ai/claude-agent-sdk'));
  const name = `@anthropic-ai/claude-agent-sdk-${process.platform}-${process.arch}`;
  for (const candidate of [name, `${name}-musl`]) {
    try {
      const directory = dirname(sdk.resolve(`${candidate}/package.json`));
      return join(directory, process.platform === 'win32' ? 'claude.exe' : 'claude');
    } catch {
      // Not this one.
    }
  }
  throw new Error('The Agent SDK bundles no Claude Code for this machine');
}

const START_ENDING = '.start.json';
const INPUT_ENDING = '.stdin.jsonl';

function readStart(file: string): RecordedStart {
  const start = JSON.parse(readFileSync(file, 'utf8')) as Omit<RecordedStart, 'input'>;
  return { ...start, input: () => wholeLines(file.replace(START_ENDING, INPUT_ENDING)) };
}

function wholeLines(file: string): Json[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line): Json => JSON.parse(line));
}

/** The start is written under another name first, so that it is never read half-written. */
function programText(claude: string, records: string): string {
  return `import { spawn } from 'node:child_process';
import { createWriteStream, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const argv = process.argv.slice(2);
const record = join(${JSON.stringify(records)}, Date.now() + '-' + process.pid);
const tee = createWriteStream(record + ${JSON.stringify(INPUT_ENDING)});
tee.once('open', () => {
  writeFileSync(record + '.part', JSON.stringify({ argv, env: process.env, cwd: process.cwd() }));
  renameSync(record + '.part', record + ${JSON.stringify(START_ENDING)});
  const child = spawn(${JSON.stringify(claude)}, argv, { stdio: ['pipe', 'inherit', 'inherit'] });
  child.stdin.on('error', () => undefined);
  process.stdin.on('data', (piece) => {
    tee.write(piece);
    child.stdin.write(piece);
  });
  process.stdin.on('end', () => child.stdin.end());
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code) => process.exit(code ?? 1));
});
`;
}

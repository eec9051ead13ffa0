import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startScriptedModel } from '../src/scripted-model/scripted-model.ts';
import { text, tool } from '../src/scripted-model/reply.ts';
import { CLIENTS, NODE_24, type Client, type Command, type Place } from './interop/clients.ts';
import {
  APPROVAL_PROMPT,
  OUTER_TEXT,
  scriptApprovalTask,
  scriptInnerTask,
  scriptOuterCaller,
  TASK_PROMPT,
  type OuterRun,
} from './interop/task.ts';

interface Outcome {
  client: string;
  version: string;
  works: boolean;
  calls: number;
  approval: string;
  question: string;
  note: string;
  /** The calls of the task with one approval, for clients whose model decides them. */
  transcript: string[];
}

interface Seen {
  status?: string;
  result?: string;
  approval?: string;
  question?: string;
  calls?: number;
  note?: string;
  error?: string;
  transcript?: string[];
}

const root = fileURLToPath(new URL('..', import.meta.url));
const TIMEOUT_MS = 90_000;

const wanted = process.argv.slice(2).map((name) => name.toLowerCase());
const chosen = CLIENTS.filter(
  ({ name }) => wanted.length === 0 || wanted.some((word) => name.toLowerCase().includes(word)),
);
const base = mkdtempSync(path.join(os.tmpdir(), 'interop-'));
const outcomes: Outcome[] = [];
try {
  for (const client of chosen) {
    const outcome = await tryClient(client);
    outcomes.push(outcome);
    console.error(
      `${outcome.works ? 'works ' : 'FAILED'} ${outcome.client} ${outcome.version}: ${String(outcome.calls)} calls, approval by ${outcome.approval}, question by ${outcome.question}${outcome.note === '' ? '' : ` (${outcome.note})`}`,
    );
  }
} finally {
  rmSync(base, { recursive: true, force: true });
}
if (wanted.length === 0) writeFileSync(path.join(root, 'docs/interop.md'), page(outcomes));
process.exitCode = outcomes.every(({ works }) => works) ? 0 : 1;

async function tryClient(client: Client): Promise<Outcome> {
  const version = client.package?.slice(client.package.lastIndexOf('@') + 1) ?? 'bundled';
  const model = await startScriptedModel();
  try {
    const home = mkdtempSync(path.join(base, 'home-'));
    const project = path.join(home, 'project');
    mkdirSync(project);
    const serverEnv = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      CLAUDE_CONFIG_DIR: path.join(home, '.claude'),
      XDG_STATE_HOME: path.join(home, 'state'),
      ...model.env(),
    };
    const place: Place = {
      install: await install(client),
      home,
      project,
      server: { command: process.execPath, args: [path.join(root, 'dist/main.mjs')], env: serverEnv },
      model: { url: model.url, env: model.env() },
      prompt: '',
    };
    scriptInnerTask(model);
    model
      .on('interop single call')
      .reply(
        tool('Bash', { command: 'echo hello > interop.txt', description: 'write a file' }),
        text('interop done: at once'),
      );
    const seen =
      client.drive.kind === 'library'
        ? await driveLibrary(client, place)
        : await driveModel(client.drive.command, place, model);
    const works =
      seen.status === 'idle' &&
      (seen.result ?? '').startsWith('interop done') &&
      existsSync(path.join(project, 'interop.txt'));
    return {
      client: client.name,
      version,
      works,
      calls: seen.calls ?? 0,
      approval: seen.approval ?? 'none',
      question: seen.question ?? 'none',
      transcript: seen.transcript ?? [],
      note: seen.note ?? (works ? '' : (seen.error ?? JSON.stringify(seen)).slice(0, 300)),
    };
  } catch (error) {
    return {
      client: client.name,
      version,
      works: false,
      calls: 0,
      approval: 'none',
      question: 'none',
      note: String(error).slice(0, 300),
      transcript: [],
    };
  } finally {
    await model.close();
  }
}

async function driveLibrary({ drive, node }: Client, place: Place): Promise<Seen> {
  if (drive.kind !== 'library') return {};
  cpSync(path.join(root, 'scripts/interop/clients'), place.install, { recursive: true });
  const runtime =
    node === undefined
      ? process.execPath
      : path.join(await installPackage(`node@${NODE_24}`), 'node_modules/node/bin/node');
  const { output } = await runProgram({
    file: runtime,
    args: [drive.program],
    cwd: place.install,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: place.home,
      INTEROP: JSON.stringify({ ...place, prompt: TASK_PROMPT }),
    },
  });
  const line = /^INTEROP (.*)$/m.exec(output)?.[1];
  return line === undefined ? { error: output.slice(-400) } : (JSON.parse(line) as Seen);
}

async function driveModel(
  command: (place: Place) => Command,
  place: Place,
  model: Awaited<ReturnType<typeof startScriptedModel>>,
): Promise<Seen> {
  const { run, output } = await driveAgent(command, place, model, TASK_PROMPT);
  const result = new RegExp(`${OUTER_TEXT} (interop done.*)`).exec(output)?.[1];
  if (result === undefined) return { error: `${run.calls.join(' | ')} :: ${output.slice(-400)}` };
  scriptApprovalTask(model);
  const approval = await driveAgent(command, place, model, APPROVAL_PROMPT);
  const approved = approval.output.includes(`${OUTER_TEXT} interop done: approved`);
  return {
    status: 'idle',
    result,
    calls: run.calls.length,
    approval: run.approvals > 0 ? 'tool' : 'form',
    question: run.questions > 0 ? 'tool' : 'form',
    transcript: approved ? approval.run.calls : [],
  };
}

async function driveAgent(
  command: (place: Place) => Command,
  place: Place,
  model: Awaited<ReturnType<typeof startScriptedModel>>,
  task: string,
): Promise<{ run: OuterRun; output: string }> {
  const run = scriptOuterCaller(model, place.project, task);
  const outerHome = path.join(place.home, 'outer');
  const { file, args, env, files = {} } = command({ ...place, home: outerHome, prompt: run.prompt });
  mkdirSync(outerHome, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(name), { recursive: true });
    writeFileSync(name, content);
  }
  const { output } = await runProgram({
    file,
    args,
    cwd: place.project,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: outerHome,
      CLAUDE_CONFIG_DIR: path.join(outerHome, '.claude'),
      ...env,
    },
  });
  return { run, output };
}

function install(client: Client): Promise<string> {
  if (client.package !== undefined) return installPackage(client.package);
  const sdk = createRequire(path.join(root, 'package.json')).resolve('@anthropic-ai/claude-agent-sdk');
  const binary = path.join(
    path.dirname(sdk),
    '..',
    `claude-agent-sdk-${process.platform}-${process.arch}`,
    process.platform === 'win32' ? 'claude.exe' : 'claude',
  );
  return Promise.resolve(binary);
}

async function installPackage(name: string): Promise<string> {
  const dir = path.join(base, name.replaceAll(/[^a-z0-9.]/gi, '_'));
  if (existsSync(dir)) return dir;
  mkdirSync(dir);
  writeFileSync(path.join(dir, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const { code, output } = await runProgram({
    file: 'npm',
    args: ['install', '--no-audit', '--no-fund', '--save-exact', name],
    cwd: dir,
    env: { PATH: process.env['PATH'] ?? '', HOME: os.homedir() },
    timeoutMs: 300_000,
  });
  if (code !== 0) throw new Error(`npm install ${name}: ${output.slice(-300)}`);
  return dir;
}

interface Program {
  file: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  timeoutMs?: number;
}

function runProgram({
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

function page(all: Outcome[]): string {
  const rows = all.map(
    ({ client, version, works, calls, approval, question, note }) =>
      `| ${client} | ${version} | ${works ? 'yes' : 'no'} | ${String(calls)} | ${approval} | ${question} | ${note.replaceAll('|', '/')} |`,
  );
  return [
    '# Clients that were driven through a whole task',
    '',
    'Written by `npm run interop`, which installs each client at the version shown and drives one task through it:',
    'start, wait, an approval, a question, the result. Models are scripted, on both sides; no key and no login is used.',
    '“tool” means answered with a tool call, “form” means the client showed a form to its user.',
    '',
    '| client | version | works | tool calls | approval by | question by | note |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
    '## What a caller needs for a task with one approval',
    '',
    'The calls of agents whose scripted model follows only the server’s instructions and tool descriptions.',
    '',
    ...all.filter(({ transcript }) => transcript.length > 0).flatMap(transcriptOf),
  ].join('\n');
}

function transcriptOf({ client, transcript }: Outcome): string[] {
  return [`### ${client}: ${String(transcript.length)} calls`, '', '```text', ...transcript.map(anonymous), '```', ''];
}

function anonymous(call: string): string {
  return call.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…').replaceAll(/"cwd":"[^"]*"/g, '"cwd":"…"');
}

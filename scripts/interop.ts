import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startScriptedModel, type ScriptedModel } from '../src/scripted-model/scripted-model.ts';
import { CLIENTS, NODE_24, type Client, type Command, type Place } from './interop/clients.ts';
import { describeForms, readDeciders, readFormRecord, type FormRecord } from './interop/form-record.ts';
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
  /** What the client does with forms, under the server's own settings. */
  forms: string;
  note: string;
  /** The calls of the task with one approval, for clients whose model decides them. */
  transcript: string[];
}

interface Seen {
  status?: string;
  result?: string;
  /** Only where nobody was asked. */
  approval?: string;
  calls?: number;
  note?: string;
  error?: string;
  transcript?: string[];
}

const root = fileURLToPath(new URL('..', import.meta.url));
const TIMEOUT_MS = 90_000;

const base = mkdtempSync(path.join(os.tmpdir(), 'interop-'));

/** A client that declines forms without asking anyone is run again, with answers by tool call only. */
async function tryClient(client: Client): Promise<Outcome> {
  const { outcome, record } = await attempt(client, {});
  if (outcome.works || record.approval !== 'decline') return outcome;
  const again = await attempt(client, { CLAUDE_CODE_MCP_APPROVALS: 'caller' });
  return {
    ...again.outcome,
    forms: outcome.forms,
    note: again.outcome.note || 'needs `CLAUDE_CODE_MCP_APPROVALS=caller`',
  };
}

async function attempt(
  client: Client,
  settings: Record<string, string>,
): Promise<{ outcome: Outcome; record: FormRecord }> {
  const model = await startScriptedModel();
  const home = mkdtempSync(path.join(base, 'home-'));
  const project = path.join(home, 'project');
  mkdirSync(project);
  const log = path.join(home, 'wire.jsonl');
  const seen = await drive(client, model, { home, project, log, settings }).catch((error: unknown): Seen => ({
    error: String(error).slice(0, 300),
  }));
  await model.close();
  const record = readFormRecord(log);
  const works =
    seen.status === 'idle' &&
    (seen.result ?? '').startsWith('interop done') &&
    existsSync(path.join(project, 'interop.txt'));
  const deciders = readDeciders(path.join(home, 'audit.jsonl'));
  const outcome: Outcome = {
    client: client.name,
    version: client.package?.slice(client.package.lastIndexOf('@') + 1) ?? bundledVersion(),
    works,
    calls: seen.calls ?? 0,
    approval: seen.approval ?? deciders.approval,
    question: deciders.question,
    forms: describeForms(record),
    transcript: seen.transcript ?? [],
    note: seen.note ?? (works ? '' : (seen.error ?? JSON.stringify(seen)).slice(0, 300)),
  };
  return { outcome, record };
}

interface Room {
  home: string;
  project: string;
  log: string;
  settings: Record<string, string>;
}

async function drive(client: Client, model: ScriptedModel, { home, project, log, settings }: Room): Promise<Seen> {
  const wire = path.join(root, 'scripts/interop/clients/wire.mjs');
  const place: Place = {
    install: await install(client),
    home,
    project,
    server: {
      command: process.execPath,
      args: [wire, log, process.execPath, path.join(root, 'dist/main.mjs')],
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: home,
        CLAUDE_CONFIG_DIR: path.join(home, '.claude'),
        XDG_STATE_HOME: path.join(home, 'state'),
        CLAUDE_CODE_MCP_AUDIT_LOG: path.join(home, 'audit.jsonl'),
        ...model.env(),
        ...settings,
      },
    },
    model: { url: model.url, env: model.env() },
    prompt: '',
  };
  scriptInnerTask(model);
  return client.drive.kind === 'library' ? driveLibrary(client, place) : driveModel(client.drive.command, place, model);
}

function bundledVersion(): string {
  const sdk = createRequire(path.join(root, 'package.json')).resolve('@anthropic-ai/claude-agent-sdk');
  const { claudeCodeVersion = '' } = JSON.parse(readFileSync(path.join(path.dirname(sdk), 'package.json'), 'utf8')) as {
    claudeCodeVersion?: string;
  };
  return claudeCodeVersion;
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

async function driveModel(command: (place: Place) => Command, place: Place, model: ScriptedModel): Promise<Seen> {
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
    transcript: approved ? approval.run.calls : [],
  };
}

async function driveAgent(
  command: (place: Place) => Command,
  place: Place,
  model: ScriptedModel,
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

const LIMITS = [
  '- A client that claims to support forms but declines them on its own, as Copilot CLI does with `-p`, refuses in the name of a user',
  '  whom nobody asked; the server cannot tell the two apart. Set `CLAUDE_CODE_MCP_APPROVALS=caller` for it.',
  '- A client that cancels them, as Claude Code does with `-p`, leaves the request to the tool call. Under `human` that is a denial.',
  '- A client without forms cannot be used under `CLAUDE_CODE_MCP_APPROVALS=human`: everything is denied, with the reason.',
  '- Codex was driven through its app server, without its own model; the terminal interfaces of all these clients were not driven.',
  '- Not driven at all: Claude Desktop, Cursor, VS Code and Gemini CLI. For these there is only the configuration.',
];

function page(all: Outcome[]): string {
  const rows = all.map(
    ({ client, version, works, calls, approval, question, forms, note }) =>
      `| ${client} | ${version} | ${works ? 'yes' : 'no'} | ${String(calls)} | ${approval} | ${question} | ${forms} | ${note.replaceAll('|', '/')} |`,
  );
  return [
    '# Clients that were driven through a whole task',
    '',
    'Written by `npm run interop`, which installs each client at the version shown and drives one task through it:',
    'start, wait, an approval, a question, the result. Models are scripted, on both sides; no key and no login is used.',
    'Who decided is read from the audit log: “tool” is a tool call of the caller, “form” a form that the client showed its user. What',
    'clients do with forms is read off the wire between client and server; the person who answers them is scripted too.',
    '',
    '| client | version | works | tool calls | approval by | question by | forms | note |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
    '## What does not work',
    '',
    ...LIMITS,
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

const SAMPLE: Outcome = {
  client: 'a client',
  version: '1.0.0',
  works: true,
  calls: 1,
  approval: 'tool',
  question: 'form',
  forms: 'shown',
  note: '',
  transcript: ['claude_code {"prompt":"…"}'],
};

async function run(words: readonly string[]): Promise<void> {
  const outcomes: Outcome[] = [];
  for (const client of CLIENTS) {
    if (words.length > 0 && !words.some((word) => client.name.toLowerCase().includes(word))) continue;
    const outcome = await tryClient(client);
    outcomes.push(outcome);
    const { works, client: name, version, calls, approval, question, forms, note } = outcome;
    console.error(
      `${works ? 'works ' : 'FAILED'} ${name} ${version}: ${calls} calls, approval by ${approval}, question by ${question}, forms: ${forms}${note === '' ? '' : ` (${note})`}`,
    );
  }
  if (words.length === 0) writeFileSync(path.join(root, 'docs/interop.md'), page(outcomes));
  process.exitCode = outcomes.every(({ works }) => works) ? 0 : 1;
}

// At the end of the file, when everything above is initialised. `--check` runs no client and writes nothing.
const wanted = process.argv.slice(2).map((name) => name.toLowerCase());
try {
  if (wanted.includes('--check')) page([SAMPLE]);
  else await run(wanted);
} finally {
  rmSync(base, { recursive: true, force: true });
}

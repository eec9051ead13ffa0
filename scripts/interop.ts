import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startScriptedModel, type ScriptedModel } from '../src/scripted-model/scripted-model.ts';
import { CLIENTS, type Client, type Command, type Place } from './interop/clients.ts';
import { describeForms, readDeciders, readFormRecord, type FormRecord } from './interop/form-record.ts';
import { tryOverHttp, type HttpOutcome } from './interop/over-http.ts';
import { Installations, runProgram } from './interop/programs.ts';
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
  /** The calls of the task with one approval, for clients whose model makes them. */
  transcript: string[];
}

interface Seen {
  status?: string;
  result?: string;
  /** Set only if nobody was asked. */
  approval?: string;
  calls?: number;
  note?: string;
  error?: string;
  transcript?: string[];
}

const root = fileURLToPath(new URL('..', import.meta.url));
const base = mkdtempSync(path.join(os.tmpdir(), 'interop-'));
const installations = new Installations(base, root);

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
    version: installations.versionOf(client),
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

interface TaskContext {
  home: string;
  project: string;
  log: string;
  settings: Record<string, string>;
}

async function drive(
  client: Client,
  model: ScriptedModel,
  { home, project, log, settings }: TaskContext,
): Promise<Seen> {
  const wire = path.join(root, 'scripts/interop/clients/wire.mjs');
  const place: Place = {
    install: await installations.of(client),
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

async function driveLibrary(client: Client, place: Place): Promise<Seen> {
  const { drive } = client;
  if (drive.kind !== 'library') return {};
  cpSync(path.join(root, 'scripts/interop/clients'), place.install, { recursive: true });
  const { output } = await runProgram({
    file: await installations.nodeFor(client),
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

const LIMITS = [
  '- A client that claims to support forms but declines them on its own, as Copilot CLI does with `-p`, refuses on behalf of a user',
  '  who was never asked; the server cannot tell the difference. Set `CLAUDE_CODE_MCP_APPROVALS=caller` for it.',
  '- A client that cancels them, as Claude Code does with `-p`, leaves the request to the tool call. Under `human`, without a hub, that is a denial.',
  '- A client without forms cannot be used under `CLAUDE_CODE_MCP_APPROVALS=human` without a hub: everything is denied, with the reason. In a hub, requests wait in its inbox.',
  '- Codex was driven through its app server, without its own model; the terminal interfaces of these clients were not tested.',
  '- Not tested at all: Claude Desktop, Cursor, VS Code and Gemini CLI. For these there is only the configuration.',
];

/** Markers in the page, so that a run over one transport leaves the other's results alone. */
const PARTS = { stdio: 'interop:stdio', http: 'interop:http' } as const;

function part(name: keyof typeof PARTS, lines: readonly string[]): string {
  return [`<!-- ${PARTS[name]} -->`, '', ...lines, '', `<!-- /${PARTS[name]} -->`].join('\n');
}

function replacePart(text: string, name: keyof typeof PARTS, lines: readonly string[]): string {
  const [begin, end] = [`<!-- ${PARTS[name]} -->`, `<!-- /${PARTS[name]} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/interop.md has no part ${begin}`);
  return text.slice(0, from) + part(name, lines) + text.slice(to + end.length);
}

function httpRow({ client, version, works, approval, question, cutOff, extras, note }: HttpOutcome): string {
  return `| ${client} | ${version} | ${works ? 'yes' : 'no'} | ${approval} | ${question} | ${cutOff} | ${extras} | ${note.replaceAll('|', '/')} |`;
}

/** The page with the rows of these clients replaced. */
function withHttpRows(text: string, all: HttpOutcome[]): string {
  const at = text.indexOf(`<!-- ${PARTS.http} -->`);
  const lines = text.slice(at).split('\n');
  const rows = lines.map((line) => {
    const outcome = all.find(({ client }) => line.startsWith(`| ${client} |`));
    return outcome ? httpRow(outcome) : line;
  });
  return text.slice(0, at) + rows.join('\n');
}

function httpPart(all: HttpOutcome[]): string[] {
  return [
    '## Over HTTP',
    '',
    'The same clients, each with its own hub and token. Clients that `install --http` supports use the entry it writes. The task has three turns in',
    'one session: an approval; a turn during which `hub restart` runs while the client waits; and a question in the session that',
    'the new hub restored. The client is not restarted. “Cut off” is how it reports the call that was in progress.',
    '',
    '| client | version | works | approval by | question by | cut off | prompts and resources | note |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...all.map(httpRow),
  ];
}

function stdioPart(all: Outcome[]): string[] {
  const rows = all.map(
    ({ client, version, works, calls, approval, question, forms, note }) =>
      `| ${client} | ${version} | ${works ? 'yes' : 'no'} | ${String(calls)} | ${approval} | ${question} | ${forms} | ${note.replaceAll('|', '/')} |`,
  );
  return [
    'The task: start, wait, an approval, a question, the result. The deciders come from the audit log: “tool” is a tool call by the caller, “form” a form that the client showed its user. What',
    'clients do with forms is captured from the traffic between client and server; the person who answers is scripted too.',
    '',
    '| client | version | works | tool calls | approval by | question by | forms | note |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
    '## What a caller needs for a task with one approval',
    '',
    'The calls made by agents whose scripted model follows only the server’s instructions and tool descriptions.',
    '',
    ...all.filter(({ transcript }) => transcript.length > 0).flatMap(transcriptOf),
  ];
}

function newPage(): string {
  return [
    '# Clients tested with a complete task',
    '',
    'Written by `npm run interop`, which installs each client at the version shown and drives one task through it. Models are scripted on both',
    'sides; no key or login is used. `npm run interop -- stdio` and `-- http` run one half each.',
    '',
    part('stdio', []),
    '',
    part('http', []),
    '',
    '## What does not work',
    '',
    ...LIMITS,
    '',
  ].join('\n');
}

function transcriptOf({ client, transcript }: Outcome): string[] {
  return [`### ${client}: ${String(transcript.length)} calls`, '', '```text', ...transcript.map(anonymous), '```', ''];
}

function anonymous(call: string): string {
  return call.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…').replaceAll(/"cwd":"[^"]*"/g, '"cwd":"…"');
}

const SAMPLE = {
  client: 'a client',
  version: '1.0.0',
  works: true,
  calls: 1,
  approval: 'tool',
  question: 'form',
  forms: 'shown',
  cutOff: 'an error',
  extras: '',
  note: '',
  transcript: ['claude_code {"prompt":"…"}'],
};

const HALVES = ['stdio', 'http'] as const;

async function run(words: readonly string[]): Promise<void> {
  const names = words.filter((word) => !HALVES.some((half) => half === word));
  const halves = HALVES.filter(
    (half) => words.includes(half) || !words.some((word) => HALVES.some((one) => one === word)),
  );
  const clients = CLIENTS.filter(
    ({ name }) => names.length === 0 || names.some((word) => name.toLowerCase().includes(word)),
  );
  const file = path.join(root, 'docs/interop.md');
  const record = (half: (typeof HALVES)[number], lines: readonly string[]): void => {
    if (names.length === 0) writeFileSync(file, replacePart(readPage(file), half, lines));
  };
  let works = true;
  if (halves.includes('stdio')) {
    const outcomes: Outcome[] = [];
    for (const client of clients) {
      const outcome = await tryClient(client);
      outcomes.push(outcome);
      report(outcome, [`${String(outcome.calls)} calls`, `forms: ${outcome.forms}`]);
    }
    works &&= outcomes.every((outcome) => outcome.works);
    record('stdio', stdioPart(outcomes));
  }
  if (halves.includes('http')) {
    const outcomes: HttpOutcome[] = [];
    for (const client of clients.filter(({ http }) => http !== undefined)) {
      const outcome = await tryOverHttp(client, { base, root, installations });
      outcomes.push(outcome);
      report(outcome, ['over HTTP', `cut off: ${outcome.cutOff}`, outcome.extras]);
    }
    const isLimited = (name: string): boolean =>
      clients.some((one) => one.name === name && one.httpLimit !== undefined);
    works &&= outcomes.every((outcome) => outcome.works || isLimited(outcome.client));
    if (names.length > 0) writeFileSync(file, withHttpRows(readPage(file), outcomes));
    record('http', httpPart(outcomes));
  }
  process.exitCode = works ? 0 : 1;
}

function readPage(file: string): string {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return Object.values(PARTS).every((name) => text.includes(`<!-- ${name} -->`)) ? text : newPage();
}

function report({ works, client, version, approval, question, note }: Outcome | HttpOutcome, more: string[]): void {
  const facts = [...more, `approval by ${approval}`, `question by ${question}`].filter((fact) => fact !== '');
  console.error(
    `${works ? 'works ' : 'FAILED'} ${client} ${version}: ${facts.join(', ')}${note === '' ? '' : ` (${note})`}`,
  );
}

// At the end of the file, once everything above is initialised. `--check` runs no client and writes nothing.
const wanted = process.argv.slice(2).map((name) => name.toLowerCase());
try {
  if (wanted.includes('--check'))
    replacePart(replacePart(newPage(), 'stdio', stdioPart([SAMPLE])), 'http', httpPart([SAMPLE]));
  else await run(wanted);
} finally {
  rmSync(base, { recursive: true, force: true });
}

/** Drives a client through the hub's HTTP endpoint, with a hub restart while one of its calls is in progress. */

import { cpSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startScriptedModel, type ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { counted } from '../../src/text/columns.ts';
import type { Client, Command, Place } from './clients.ts';
import { readDeciders } from './form-record.ts';
import { HTTP_DONE, scriptHttpCaller, scriptHttpTask } from './http-task.ts';
import { startInteropHub, type InteropHub } from './hub.ts';
import { runProgram, type Installations } from './programs.ts';

export interface HttpOutcome {
  client: string;
  version: string;
  works: boolean;
  approval: string;
  question: string;
  /** How the client reported the call that the restart cut off. */
  cutOff: string;
  /** Prompts and resources, if tested with this client. */
  extras: string;
  note: string;
}

interface Seen {
  result: string;
  told: string;
  extras?: string;
}

export interface HttpSetup {
  readonly base: string;
  readonly root: string;
  readonly installations: Installations;
}

export async function tryOverHttp(client: Client, setup: HttpSetup): Promise<HttpOutcome> {
  const model = await startScriptedModel();
  const home = mkdtempSync(path.join(setup.base, 'http-'));
  const project = path.join(home, 'project');
  mkdirSync(project);
  const hub = await startInteropHub(path.join(setup.root, 'dist/main.mjs'), home, { ...model.env(), ...client.hubEnv });
  const cut = scriptHttpTask(model);
  let isRestarting = false;
  const restarted = cut.arrived
    .then(() => {
      isRestarting = true;
      return hub.restart();
    })
    .then(() => cut.release());
  let seen: Seen = { result: '', told: '' };
  let note = '';
  try {
    seen = await drive(client, { model, home, project, hub, restarted, ...setup });
    await restarted;
  } catch (error) {
    note = String(error);
  } finally {
    // A hub that is still starting would not be found.
    if (isRestarting) await restarted.catch(() => undefined);
    await hub.stop();
    await model.close();
  }
  const deciders = readDeciders(path.join(home, 'audit.jsonl'));
  const works = seen.result.startsWith('interop done') && existsSync(path.join(project, 'interop.txt'));
  return {
    client: client.name,
    version: setup.installations.versionOf(client),
    works,
    ...deciders,
    cutOff: works ? cutOffInWords(seen.told) : '',
    extras: seen.extras ?? '',
    note: works ? settingsOf(client) : (client.httpLimit ?? shortened(note || JSON.stringify(seen), setup.base)),
  };
}

function settingsOf({ hubEnv = {} }: Client): string {
  const settings = Object.entries(hubEnv).map(([name, value]) => `\`${name}=${value}\``);
  return settings.length === 0 ? '' : `needs ${settings.join(', ')}`;
}

function shortened(text: string, base: string): string {
  return text.replaceAll(base, '…').replaceAll('\n', ' ').slice(-500);
}

function cutOffInWords(told: string): string {
  if (told === '') return 'made again by the client';
  return /hub is stopping|hub stopped/i.test(told)
    ? 'an error that says where to look'
    : `an error: ${told.slice(0, 80)}`;
}

interface TaskContext extends HttpSetup {
  readonly model: ScriptedModel;
  readonly home: string;
  readonly project: string;
  readonly hub: InteropHub;
  readonly restarted: Promise<void>;
}

async function drive(client: Client, context: TaskContext): Promise<Seen> {
  const install = await context.installations.of(client);
  const outerHome = path.join(context.home, 'outer');
  const place: Place = {
    install,
    home: outerHome,
    project: context.project,
    server: undefined,
    model: { url: context.model.url, env: context.model.env() },
    prompt: '',
  };
  mkdirSync(outerHome);
  return client.drive.kind === 'library'
    ? driveProgram(client, place, context)
    : driveAgent(client, client.drive.command, place, context);
}

/** Environment of a client: its own home, so that `install` writes the entry where the client looks for it. */
function clientEnv({ home }: Place): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: home, CLAUDE_CONFIG_DIR: path.join(home, '.claude') };
}

/** Clients that `install --http` supports use the entry it writes. */
async function installEntry({ http }: Client, place: Place, { hub }: TaskContext): Promise<void> {
  await hub.command(['install', String(http), '--http', '--attended', '--yes'], clientEnv(place));
}

async function driveProgram(client: Client, place: Place, context: TaskContext): Promise<Seen> {
  const { hub, root, installations } = context;
  cpSync(path.join(root, 'scripts/interop/clients'), place.install, { recursive: true });
  let headers = {};
  if (client.http === 'library') {
    const made = await hub.command(['token', 'create', 'interop', '--role', 'caller', '--attended', '--json']);
    headers = { Authorization: `Bearer ${(JSON.parse(made) as { token: string }).token}` };
  } else await installEntry(client, place, context);
  const http = { url: `${hub.url}/mcp`, headers };
  const { output } = await runProgram({
    file: await installations.nodeFor(client),
    args: [client.drive.kind === 'library' ? client.drive.program : ''],
    cwd: place.install,
    env: { ...clientEnv(place), INTEROP: JSON.stringify({ ...place, http }) },
  });
  const line = /^INTEROP (.*)$/m.exec(output)?.[1];
  if (line === undefined) throw new Error(output.slice(-400));
  const seen = JSON.parse(line) as {
    result?: string;
    told?: string;
    error?: string;
    extras?: { prompts: number; resources: number; updates: number };
  };
  if (seen.error !== undefined) throw new Error(seen.error);
  const { prompts, resources, updates } = seen.extras ?? { prompts: 0, resources: 0, updates: 0 };
  return {
    result: seen.result ?? '',
    told: seen.told ?? '',
    ...(seen.extras && {
      extras: `${counted(prompts, 'prompt')} and ${counted(resources, 'resource')} listed, ${counted(updates, 'update')} received`,
    }),
  };
}

async function driveAgent(
  client: Client,
  command: (place: Place) => Command,
  place: Place,
  context: TaskContext,
): Promise<Seen> {
  const { model, restarted } = context;
  const caller = scriptHttpCaller(model, place.project, restarted);
  const run = async (prompt: string): Promise<string> => {
    const { file, args, env } = command({ ...place, prompt });
    const { output } = await runProgram({ file, args, cwd: place.project, env: { ...clientEnv(place), ...env } });
    return output;
  };
  for (const [name, content] of Object.entries(command(place).files ?? {})) {
    mkdirSync(path.dirname(name), { recursive: true });
    writeFileSync(name, content);
  }
  await installEntry(client, place, context);
  const output = await run(caller.prompt);
  const result = new RegExp(`${HTTP_DONE} (interop done.*)`).exec(output)?.[1];
  if (result === undefined) throw new Error(`${caller.calls.join(' | ')} :: ${caller.told} :: ${output.slice(-400)}`);
  const extras = client.http === 'claude-code' ? await seenInClaudeCode(model, run) : '';
  return { result, told: caller.told, extras };
}

/** Claude Code offers prompts as slash commands, and has tools for its model to list and read resources. */
async function seenInClaudeCode(model: ScriptedModel, run: (prompt: string) => Promise<string>): Promise<string> {
  const task = 'fix-the-shop';
  const asked = model.on((request) => request.userTexts.some((one) => one.includes(task)));
  asked.always(text('The prompt has arrived.'));
  const said = await run(`/mcp__claude-code__delegate ${task}`);
  const prompt = model
    .requestsFor(asked)
    .flatMap(({ userTexts }) => userTexts)
    .find((one) => one.includes('claude_code'));
  if (prompt === undefined) throw new Error(`The prompt did not reach the model: ${said.slice(-300)}`);

  model
    .on('read the resources')
    .reply(
      tool('ListMcpResourcesTool', { server: 'claude-code' }),
      tool('ReadMcpResourceTool', { server: 'claude-code', uri: 'claude-code://sessions' }),
      (request) => text(`Read: ${request.toolResults[0]?.text ?? ''}`),
    );
  const read = await run('read the resources');
  if (!read.includes('interop first turn')) throw new Error(`The resource was not read: ${read.slice(-300)}`);
  return 'prompts as slash commands, resources listed and read';
}

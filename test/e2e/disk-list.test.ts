import { mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'vitest';
import { gate, text } from '../../src/scripted-model/reply.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { DISK_RESUME } from '../harness/toolsets.ts';
import { promptLine, writeTranscript } from '../transcripts/written-transcript.ts';
import { verifies } from './requirements.ts';
import { runInTerminal } from './terminal-claude.ts';

async function directoryIn(h: Harness, name: string): Promise<string> {
  const directory = path.join(path.dirname(h.project), name);
  await mkdir(directory);
  return directory;
}

/** Writes a transcript where Claude Code would keep it. */
async function writeSession(h: Harness, cwd: string, minute: number, prompt = 'hello'): Promise<string> {
  const project = cwd.replace(/[^a-zA-Z0-9]/g, '-');
  const lastModified = new Date(Date.UTC(2026, 0, 1, 0, minute));
  const content = (id: string): string => promptLine(id, prompt, cwd);
  return (await writeTranscript(h.configDir, content, { project, lastModified })).sessionId;
}

type Filter = NonNullable<Parameters<Harness['dialect']['listMachine']>[0]>;

async function listed(h: Harness, filter?: Filter): Promise<Json[]> {
  return (await h.ok(...h.dialect.listMachine(filter))).sessions;
}

async function listedIds(h: Harness, filter?: Filter): Promise<string[]> {
  return (await listed(h, filter)).map(({ sessionId }) => sessionId);
}

/** Pages of the list on disk. The server itself has none of these sessions. */
async function expectPages(h: Harness, [, second, third]: string[]): Promise<void> {
  const page = async (args: object): Promise<Json> =>
    (await h.ok('claude_code_session', { action: 'list', scope: 'disk', ...args })).sessions;
  expect(await page({ limit: 1, offset: 1 })).toMatchObject([{ sessionId: second }]);
  expect(await page({ offset: 2 })).toMatchObject([{ sessionId: third }]);
  expect(await page({ offset: 3 })).toEqual([]);
  expect(await h.ok('claude_code_session', { action: 'list' })).toEqual({ sessions: [] });
}

verifies('session.disk-list', async (variant) => {
  const h = await variant.start();
  h.model.on(/./).always(text('done'));
  const elsewhere = await directoryIn(h, 'elsewhere');
  const gone = path.join(h.home, 'gone');
  const oldest = await writeSession(h, gone, 0);
  const typed = 'typed by a person';
  // A terminal writes the same for both toolsets.
  const middle = await (variant.toolset === 'compact'
    ? runInTerminal(h, typed, { cwd: elsewhere })
    : writeSession(h, elsewhere, 1, typed));
  const newest = await h.begin('asked by a caller');
  await h.finish(newest);

  const expected = [
    { sessionId: newest, projectDirectory: h.project, displayText: 'asked by a caller' },
    { sessionId: middle, projectDirectory: elsewhere, displayText: 'typed by a person' },
    { sessionId: oldest, projectDirectory: gone, displayText: 'hello' },
  ];
  expect(await listed(h)).toMatchObject(expected);
  expect(await listedIds(h, { limit: 2 })).toEqual([newest, middle]);
  expect(await listedIds(h, { projectDirectory: elsewhere })).toEqual([middle]);
  expect(await listedIds(h, { projectDirectory: gone })).toEqual([oldest]);
  const link = path.join(h.home, 'link');
  await symlink(elsewhere, link);
  expect(await listedIds(h, { projectDirectory: link })).toEqual([middle]);
  expect(await listed(h, { projectDirectory: '/nowhere' })).toEqual([]);

  await h.restartServer();
  expect(await listed(h)).toMatchObject(expected);
  if (variant.toolset === 'compact') await expectPages(h, [newest, middle, oldest]);
});

verifies('list.begun', async (variant) => {
  const h = await variant.start();
  const held = gate(text('done'));
  h.model.on('just\nbegun').reply(held);
  const elsewhere = await directoryIn(h, 'elsewhere');
  const sessionId = await h.begin('just\nbegun');
  await held.arrived;
  // With retries, because Claude Code may be writing there.
  await rm(path.join(h.configDir, 'projects'), { recursive: true, force: true, maxRetries: 10 });

  const begun = { sessionId, projectDirectory: h.project, displayText: 'just begun', activeStatus: 'running' };
  expect(await listed(h)).toMatchObject([begun]);
  // The first lines of a transcript do not say where the session works.
  const title = `${JSON.stringify({ type: 'custom-title', customTitle: 'just begun', sessionId })}\n`;
  await writeTranscript(h.configDir, () => title, { project: h.project.replace(/[^a-zA-Z0-9]/g, '-'), sessionId });
  expect(await listed(h)).toMatchObject([begun]);
  expect(await listed(h, { projectDirectory: h.project })).toMatchObject([begun]);
  expect(await listed(h, { projectDirectory: elsewhere })).toEqual([]);
  held.release();
  await h.finish(sessionId);
});

verifies('session.disk-list-allowed', async (variant) => {
  const h = await variant.start({ env: { ...DISK_RESUME, CLAUDE_CODE_MCP_ALLOWED_DIRS: '.' } });
  const outside = await directoryIn(h, 'outside');
  const neighbour = await directoryIn(h, 'project-neighbour');
  const inside = path.join(h.project, 'inside');
  await mkdir(inside);
  // Oldest first. One link leads out, the other in.
  const leadsOut = path.join(h.project, 'leads-out');
  const leadsIn = path.join(h.home, 'leads-in');
  await symlink(outside, leadsOut);
  await symlink(inside, leadsIn);
  const places = [inside, outside, neighbour, leadsOut, outside, leadsIn, outside, h.project];
  const written: string[] = [];
  for (const [index, cwd] of places.entries()) written.push(await writeSession(h, cwd, index));
  const allowed = [written[7]!, written[5]!, written[0]!];

  expect(await listedIds(h)).toEqual(allowed);
  expect(await listedIds(h, { limit: 1 })).toEqual(allowed.slice(0, 1));
  expect(await listedIds(h, { limit: 3 })).toEqual(allowed);
  if (variant.toolset === 'compact') await expectPages(h, allowed);
  for (const projectDirectory of [outside, leadsOut]) {
    await h.fails(...h.dialect.listMachine({ projectDirectory }), 'PERMISSION_DENIED');
  }
  for (const sessionId of written.filter((id) => !allowed.includes(id))) {
    const [name, reply] = h.dialect.resume(sessionId, 'hello');
    await h.fails(name, reply, 'PERMISSION_DENIED');
    if (variant.toolset === 'explicit') await h.fails(name, { ...reply, fork: true }, 'PERMISSION_DENIED');
    else
      for (const way of [{ forkSession: true }, { diskResumeConfig: { cwd: outside } }])
        await h.fails(name, { ...reply, ...way }, 'PERMISSION_DENIED');
  }
});

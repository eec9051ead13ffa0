import { mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { gate, text } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { promptLine, writeTranscript } from '../transcripts/written-transcript.ts';
import { runInTerminal } from './terminal-claude.ts';

async function directoryIn(h: Harness, name: string): Promise<string> {
  const directory = path.join(path.dirname(h.project), name);
  await mkdir(directory);
  return directory;
}

/** Several processes one after the other, on a machine that may have other work. */
const SLOW = { timeout: 90_000 };

const ids = ({ sessions }: Json): string[] => sessions.map(({ sessionId }: Json) => sessionId);

test('every session of the machine is listed, newest first, with what this server has live', SLOW, async () => {
  const h = await startHarness({ toolset: 'explicit' });
  h.model.on(/./).always(text('done'));
  const elsewhere = await directoryIn(h, 'elsewhere');
  const oldest = await runInTerminal(h, 'typed by a person', { cwd: elsewhere });
  const { sessionId: middle } = await h.ok('claude_create_session', { prompt: 'asked by a caller' });
  await h.waitUntilRest(middle);
  const newest = await runInTerminal(h, 'typed again');

  const all = await h.ok('claude_list_sessions', {});
  expect(all.sessions).toEqual([
    { sessionId: newest, projectDirectory: h.project, displayText: 'typed again', ...inactive },
    {
      sessionId: middle,
      projectDirectory: h.project,
      displayText: 'asked by a caller',
      timestamp: expect.any(String),
      isActive: true,
      activeStatus: 'completed',
    },
    { sessionId: oldest, projectDirectory: elsewhere, displayText: 'typed by a person', ...inactive },
  ]);
  const times = all.sessions.map(({ timestamp }: Json) => Date.parse(timestamp));
  expect(times).toEqual(times.toSorted((a: number, b: number) => b - a));

  expect(ids(await h.ok('claude_list_sessions', { limit: 2 }))).toEqual([newest, middle]);
  expect(ids(await h.ok('claude_list_sessions', { projectDirectory: elsewhere }))).toEqual([oldest]);
  expect(ids(await h.ok('claude_list_sessions', { projectDirectory: h.project }))).toEqual([newest, middle]);
  const link = path.join(h.home, 'link');
  await symlink(elsewhere, link);
  expect(ids(await h.ok('claude_list_sessions', { projectDirectory: link }))).toEqual([oldest]);
  expect(await h.ok('claude_list_sessions', { projectDirectory: '/nowhere' })).toEqual({ sessions: [] });
  await h.fails('claude_list_sessions', { limit: 0 }, 'INVALID_ARGUMENT');

  await h.restartServer();
  const afterwards = await h.ok('claude_list_sessions', {});
  expect(ids(afterwards).toSorted()).toEqual([newest, middle, oldest].toSorted());
  expect(afterwards.sessions.some(({ isActive }: Json) => isActive)).toBe(false);
});

const inactive = { timestamp: expect.any(String), isActive: false };

test('a live session is listed before its transcript is written', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const held = gate(text('done'));
  h.model.on('just\nbegun').reply(held);
  const elsewhere = await directoryIn(h, 'elsewhere');
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'just\nbegun' });
  await held.arrived;
  await rm(path.join(h.configDir, 'projects'), { recursive: true, force: true });

  const begun = { sessionId, projectDirectory: h.project, displayText: 'just begun', activeStatus: 'running' };
  expect((await h.ok('claude_list_sessions', {})).sessions).toMatchObject([begun]);
  expect((await h.ok('claude_list_sessions', { projectDirectory: h.project })).sessions).toMatchObject([begun]);
  expect(await h.ok('claude_list_sessions', { projectDirectory: elsewhere })).toEqual({ sessions: [] });
  held.release();
  await h.waitUntilRest(sessionId);
});

test('a session of a directory that is gone is still listed', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  h.model.on(/./).always(text('done'));
  const elsewhere = await directoryIn(h, 'elsewhere');
  const sessionId = await runInTerminal(h, 'hello', { cwd: elsewhere });
  await rm(elsewhere, { recursive: true });
  expect(ids(await h.ok('claude_list_sessions', {}))).toEqual([sessionId]);
  expect(ids(await h.ok('claude_list_sessions', { projectDirectory: elsewhere }))).toEqual([sessionId]);
  const message = await h.fails('claude_send_message', { sessionId, message: 'again' }, 'INVALID_ARGUMENT');
  expect(message).toContain(elsewhere);
});

test('sessions outside the allowed directories are neither listed nor opened', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const outside = await directoryIn(h, 'outside');
  const neighbour = await directoryIn(h, 'project-neighbour');
  const inside = path.join(h.project, 'inside');
  await mkdir(inside);
  // Oldest first; the one link leads out, the other in.
  const leadsOut = path.join(h.project, 'leads-out');
  const leadsIn = path.join(h.home, 'leads-in');
  await symlink(outside, leadsOut);
  await symlink(inside, leadsIn);
  const places = [inside, outside, neighbour, leadsOut, outside, leadsIn, outside, h.project];
  const written = [];
  for (const [index, cwd] of places.entries()) written.push(await writeSession(h, cwd, index));
  const [first, , , , , second, , third] = written;
  await h.restartServer({ env: { CLAUDE_CODE_MCP_ALLOWED_DIRS: h.project } });

  expect(ids(await h.ok('claude_list_sessions', {}))).toEqual([third, second, first]);
  expect(ids(await h.ok('claude_list_sessions', { limit: 1 }))).toEqual([third]);
  expect(ids(await h.ok('claude_list_sessions', { limit: 3 }))).toEqual([third, second, first]);
  await h.fails('claude_list_sessions', { projectDirectory: outside }, 'PERMISSION_DENIED');
  await h.fails('claude_list_sessions', { projectDirectory: leadsOut }, 'PERMISSION_DENIED');
  for (const sessionId of written.filter((id) => ![first, second, third].includes(id))) {
    await h.fails('claude_send_message', { sessionId, message: 'hello' }, 'PERMISSION_DENIED');
  }
});

/** A transcript in the place where Claude Code would keep it. */
async function writeSession(h: Harness, cwd: string, minute: number): Promise<string> {
  const project = cwd.replace(/[^a-zA-Z0-9]/g, '-');
  const lastModified = new Date(Date.UTC(2026, 0, 1, 0, minute));
  const content = (id: string): string => promptLine(id, 'hello', cwd);
  return (await writeTranscript(h.configDir, content, { project, lastModified })).sessionId;
}

test('the compact set lists the same with scope "disk"', SLOW, async () => {
  const h = await startHarness({ toolset: 'compact' });
  h.model.on(/./).always(text('done'));
  const elsewhere = await directoryIn(h, 'elsewhere');
  const oldest = await runInTerminal(h, 'typed by a person', { cwd: elsewhere });
  const { sessionId } = await h.ok('claude_code', { prompt: 'asked by a caller', waitMs: 15_000 });
  const list = (args: object): Promise<Json> => h.ok('claude_code_session', { action: 'list', ...args });

  expect((await list({ scope: 'disk' })).sessions).toMatchObject([
    { sessionId, status: 'idle', displayText: 'asked by a caller', projectDirectory: h.project },
    { sessionId: oldest, displayText: 'typed by a person', projectDirectory: elsewhere },
  ]);
  expect(ids(await list({ scope: 'disk', limit: 1, offset: 1 }))).toEqual([oldest]);
  expect(ids(await list({ scope: 'disk', projectDirectory: elsewhere }))).toEqual([oldest]);
  expect(ids(await list({}))).toEqual([sessionId]);
});

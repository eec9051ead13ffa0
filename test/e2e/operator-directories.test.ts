/** ALLOWED_DIRS: whatever a session works on lies inside, links and `..` resolved. */

import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';

/** The project is the directory that is allowed, and where the server runs. */
const FENCED = { CLAUDE_CODE_MCP_ALLOWED_DIRS: '.' };
const RESUMABLE = { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1', CLAUDE_CODE_MCP_RESUME_SECRET: 'the secret of the test' };

interface Fence extends Record<'inside' | 'outside' | 'wayOut' | 'wayIn', string> {
  readonly h: Harness;
}

async function fence(options: HarnessOptions = {}): Promise<Fence> {
  const h = await startHarness({ ...options, env: { ...FENCED, ...options.env } });
  const places = {
    inside: join(h.project, 'inside'),
    outside: join(h.home, 'outside'),
    wayOut: join(h.project, 'way-out'),
    wayIn: join(h.home, 'way-in'),
  };
  await mkdir(places.inside);
  await mkdir(places.outside);
  await symlink(places.outside, places.wayOut);
  await symlink(places.inside, places.wayIn);
  return { h, ...places };
}

async function run(h: Harness, options: Record<string, unknown>): Promise<{ sessionId: string; resumeToken?: string }> {
  h.model.on('a small task').reply(text('done'));
  return h.ok('claude_code', { prompt: 'a small task', waitMs: 15_000, ...options });
}

const DENIED = 'PERMISSION_DENIED';

describe('a start', () => {
  it('outside is refused, however the directory is written', async () => {
    const { h, outside, wayOut, inside } = await fence();
    const roundabout = [
      outside,
      wayOut,
      join(wayOut, '.'),
      '../home/outside',
      `${inside}/../../home/outside`,
      '/',
      '..',
    ];
    // Whether a directory exists outside is not told either.
    for (const cwd of [...roundabout, `${h.project}-of-another`, join(outside, 'no-such')]) {
      expect(await h.fails('claude_code', { prompt: 'never', cwd }, DENIED)).toContain('CLAUDE_CODE_MCP_ALLOWED_DIRS');
    }
    expect(h.model.requests).toEqual([]);
  });

  it('inside goes on, also by a link that leads there or a `..` that stays', async () => {
    const { h, wayIn, inside } = await fence({ args: ['--max-sessions', '2'] });
    for (const cwd of [undefined, wayIn, `${inside}/../inside`]) await run(h, cwd === undefined ? {} : { cwd });
  });

  it('that opens a directory outside is refused', async () => {
    const { h, outside, wayOut } = await fence();
    const settings = join(h.project, 'settings.json');
    await writeFile(settings, JSON.stringify({ permissions: { additionalDirectories: [outside] } }));
    const attempts: Record<string, unknown>[] = [
      { additionalDirectories: [outside] },
      { additionalDirectories: ['.', wayOut] },
      { advanced: { additionalDirectories: ['../home/outside'] } },
      { projectConfigRoot: wayOut },
      { debugFile: join(wayOut, 'debug.log') },
      { debugFile: '../debug.log' },
      { settings: { permissions: { additionalDirectories: [outside] } } },
      { settings: JSON.stringify({ permissions: { additionalDirectories: ['..'] } }) },
      { settings },
    ];
    for (const options of attempts) await h.fails('claude_code', { prompt: 'never', ...options }, DENIED);
  });

  it('may not write through a link that leads nowhere yet', async () => {
    const { h, outside } = await fence();
    await symlink(join(outside, 'new.log'), join(h.project, 'debug.log'));
    await h.fails('claude_code', { prompt: 'never', debugFile: 'debug.log' }, DENIED);
  });
});

it('a server whose own directory lies outside needs a cwd, and says where', async () => {
  const h = await startHarness({ args: ['--allowed-dirs', '../home'] });
  expect(await h.fails('claude_code', { prompt: 'never' }, DENIED)).toContain(h.home);
  await run(h, { cwd: h.home });
});

it('a list shows the sessions inside, and asks for none outside', async () => {
  const { h, outside, inside } = await fence({ env: { CLAUDE_CODE_MCP_ALLOWED_DIRS: '' } });
  const elsewhere = await run(h, { cwd: outside });
  const here = await run(h, { cwd: inside });
  const list = async (args: object): Promise<string[]> => {
    const { sessions } = await h.ok('claude_code_session', { action: 'list', scope: 'disk', ...args });
    return sessions.map((session: { sessionId: string }) => session.sessionId);
  };
  expect((await list({})).sort()).toEqual([elsewhere.sessionId, here.sessionId].sort());
  await h.restartServer({ env: FENCED });
  expect(await list({})).toEqual([here.sessionId]);
  expect(await list({ offset: 1 })).toEqual([]);
  const args = { action: 'list', scope: 'disk', projectDirectory: outside };
  await h.fails('claude_code_session', args, DENIED);
});

it('a session that was recorded outside is not resumed, not forked and not moved inside unasked', async () => {
  const { h, outside } = await fence({ env: { ...RESUMABLE, CLAUDE_CODE_MCP_ALLOWED_DIRS: '' } });
  const { sessionId, resumeToken } = await run(h, { cwd: outside });
  await h.restartServer({ env: { ...RESUMABLE, ...FENCED } });
  for (const options of [{}, { forkSession: true }, { diskResumeConfig: { cwd: outside } }]) {
    const args = { sessionId, resumeToken, prompt: 'never', ...options };
    expect(await h.fails('claude_code_reply', args, DENIED)).toContain(outside);
  }
});

it('a directory that became a link to the outside is refused to a resume, a fork and a rewind', async () => {
  const { h, inside, outside } = await fence({ args: ['--max-sessions', '1'] });
  const { sessionId } = await run(h, { cwd: inside, enableFileCheckpointing: true });
  // Takes the only place, so that the first session has no process any more.
  await run(h, {});
  await rename(inside, `${inside}-moved`);
  await symlink(outside, inside);
  await h.fails('claude_code_reply', { sessionId, prompt: 'never' }, DENIED);
  await h.fails('claude_code_reply', { sessionId, prompt: 'never', forkSession: true }, DENIED);
  const toUserMessage = '00000000-0000-4000-8000-000000000000';
  await h.fails('claude_code_session', { action: 'rewind', sessionId, toUserMessage }, DENIED);
});

it('a prompt cannot have a file outside attached, which Claude Code would read without asking', async () => {
  const { h, outside, wayOut } = await fence();
  const secret = join(outside, 'secret.txt');
  await writeFile(secret, 'what lies outside');
  await writeFile(join(h.project, 'notes.txt'), 'what lies inside');
  await symlink(secret, join(h.project, 'innocent.txt'));
  const mentions = [secret, `"${secret}"`, `${secret}#L1`, '../home/outside/secret.txt', join(wayOut, 'secret.txt')];
  for (const mention of [...mentions, '~/outside/secret.txt', 'innocent.txt', 'innocent.txt, please']) {
    const message = await h.fails('claude_code', { prompt: `Look at\n@${mention}` }, DENIED);
    expect(message).toContain('without asking');
  }
  const agents = { a: { description: 'a', prompt: 'a', initialPrompt: `@${secret}` } };
  await h.fails('claude_code', { prompt: 'go on', agent: 'a', agents }, DENIED);

  const script = h.model.on('mail me@example.org').reply(text('read'));
  const prompt = 'mail me@example.org about @notes.txt and @scope/package';
  const { sessionId } = await h.ok('claude_code', { prompt, waitMs: 15_000 });
  expect(JSON.stringify(h.model.requestsFor(script)[0]?.body)).toContain('what lies inside');
  await h.fails('claude_code_reply', { sessionId, prompt: `@${secret}` }, DENIED);
  expect(JSON.stringify(h.model.requests.map(({ body }) => body))).not.toContain('what lies outside');
});

it('an answer cannot open a directory outside', async () => {
  const { h, outside } = await fence();
  h.model.on('touch it').reply(tool('Bash', { command: 'touch asked.txt', description: 'touch' }), text('done'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'touch it' });
  const { requestId } = await h.waitForRequest(sessionId);
  const allowing = (directories: string[]): Record<string, unknown> => ({
    action: 'respond_permission',
    sessionId,
    requestId,
    decision: 'allow',
    updatedPermissions: [{ type: 'addDirectories', directories, destination: 'session' }],
  });
  await h.fails('claude_code_check', allowing([outside]), DENIED);
  await h.ok('claude_code_check', allowing([h.project]));
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
});

describe('disk resume', () => {
  it('needs the switch, the secret and the token of this session', async () => {
    const h = await startHarness({ env: RESUMABLE });
    const { sessionId, resumeToken } = await run(h, {});
    const other = await run(h, {});
    const reply = { sessionId, prompt: 'a small task' };

    await h.restartServer({ env: { ...RESUMABLE, CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '0' } });
    const hint = await h.fails('claude_code_reply', { ...reply, resumeToken }, 'SESSION_NOT_FOUND');
    expect(hint).toContain('CLAUDE_CODE_MCP_ALLOW_DISK_RESUME');

    await h.restartServer({ env: { ...RESUMABLE, CLAUDE_CODE_MCP_RESUME_SECRET: '' } });
    const missing = await h.fails('claude_code_reply', { ...reply, resumeToken }, DENIED);
    expect(missing).toContain('CLAUDE_CODE_MCP_RESUME_SECRET');

    await h.restartServer({ args: ['--allow-disk-resume'], env: RESUMABLE });
    for (const wrong of [undefined, 'x', other.resumeToken]) {
      await h.fails('claude_code_reply', { ...reply, ...(wrong && { resumeToken: wrong }) }, DENIED);
    }
    h.model.on('a small task').reply(text('resumed'));
    expect(await h.ok('claude_code_reply', { ...reply, resumeToken, waitMs: 15_000 })).toMatchObject({ sessionId });
  });
});

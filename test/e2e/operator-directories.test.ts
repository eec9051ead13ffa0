/** ALLOWED_DIRS: whatever a session works on lies inside, links and `..` resolved. */

import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';
import { recordingClaude } from '../harness/recording-claude.ts';

/** The project is the directory that is allowed, and where the server runs. */
const FENCED = { CLAUDE_CODE_MCP_ALLOWED_DIRS: '.' };
const RESUMABLE = { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1', CLAUDE_CODE_MCP_RESUME_SECRET: 'the secret of the test' };

interface Fence extends Record<'inside' | 'outside' | 'wayOut' | 'wayIn', string> {
  readonly h: Harness;
}

async function fence(options: HarnessOptions = {}): Promise<Fence> {
  return fenceIn(await startHarness({ ...options, env: { ...FENCED, ...options.env } }));
}

async function fenceIn(h: Harness): Promise<Fence> {
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
  h.model.on('a small task').always(text('done'));
  return h.ok('claude_code', { prompt: 'a small task', waitMs: 40_000, ...options });
}

const DENIED = 'PERMISSION_DENIED';

describe('a start', () => {
  const harness = shareHarness({ env: FENCED });
  let shared: Fence;
  beforeAll(async () => {
    shared = await fenceIn(harness());
  });

  it('outside is refused, however the directory is written', async () => {
    const { h, outside, wayOut, inside } = shared;
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
    const { h, wayIn } = shared;
    await run(h, { cwd: `${wayIn}/../way-in` });
  });

  it('that opens a directory outside is refused', async () => {
    const { h, outside, wayOut } = shared;
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
      ...[` ${outside}`, '~', '~/../home/outside', `${outside}\n`].map((directory) => ({
        settings: { permissions: { additionalDirectories: [directory] } },
      })),
      { settings: { autoMemoryDirectory: '~/outside' } },
      { settings: { plansDirectory: outside } },
    ];
    for (const options of attempts) await h.fails('claude_code', { prompt: 'never', ...options }, DENIED);
  });

  it('with a settings file runs with what was read when it was checked', async () => {
    const { h, outside } = await fence({ args: ['--max-sessions', '1'] });
    const claude = await recordingClaude(h.project);
    const settings = join(h.project, 'settings.json');
    await writeFile(settings, JSON.stringify({ permissions: { additionalDirectories: ['inside'] } }));
    const program = { pathToClaudeCodeExecutable: claude.path };
    const { sessionId } = await run(h, { settings: 'settings.json', ...program });
    await writeFile(settings, JSON.stringify({ permissions: { additionalDirectories: [outside] } }));
    // Takes the only place, so that the first session has no process any more.
    await run(h, {});
    h.model.on('go on').reply(text('done'));
    await h.ok('claude_code_reply', { sessionId, prompt: 'go on', waitMs: 40_000 });
    const given = claude
      .starts()
      .map(({ argv }) => argv[argv.indexOf('--settings') + 1] ?? '')
      .filter((text) => text.startsWith('{'));
    expect(given).toHaveLength(2);
    for (const text of given)
      expect(JSON.parse(text).permissions.additionalDirectories).toEqual([join(h.project, 'inside')]);
  });

  it('whose settings lie outside is refused, and nothing of what a file holds is told', async () => {
    const { h, outside } = await fence();
    await writeFile(join(outside, 'settings.json'), '{}');
    await writeFile(join(h.project, 'notes.txt'), 'root:x:0:0');
    for (const settings of [join(outside, 'settings.json'), '../home/outside/settings.json', '/etc/passwd', '~/x.json'])
      await h.fails('claude_code', { prompt: 'never', settings }, DENIED);
    for (const settings of ['notes.txt', '{"root:x:0:0', 'inside', 'no-such.json'])
      expect(await h.fails('claude_code', { prompt: 'never', settings }, 'INVALID_ARGUMENT')).not.toContain('root');
    await h.restartServer({ env: { CLAUDE_CODE_MCP_ALLOWED_DIRS: '' } });
    const message = await h.fails('claude_code', { prompt: 'never', settings: '/etc/passwd' }, 'INVALID_ARGUMENT');
    expect(message).toContain('settings: /etc/passwd is not a JSON object.');
  });

  it('may not write through a link that leads nowhere yet', async () => {
    const { h, outside } = shared;
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
  for (const directory of [outside, ` ${outside}`, '~', '~/../home/outside', '../home/outside', `${h.project}/way-out`])
    await h.fails('claude_code_check', allowing([directory]), DENIED);
  await h.ok('claude_code_check', allowing([h.project]));
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
});

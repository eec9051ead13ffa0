/** ALLOWED_DIRS: everything a session works on must be inside, with links and `..` resolved. */

import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { recordingClaude } from '../harness/recording-claude.ts';

/** Only the project is allowed, which is also where the server runs. */
const FENCED = { CLAUDE_CODE_MCP_ALLOWED_DIRS: '.' };

interface Fence extends Record<'inside' | 'outside' | 'wayOut' | 'wayIn', string> {
  readonly h: Harness;
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

async function run(h: Harness, options: Record<string, unknown>): Promise<{ sessionId: string }> {
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

  it('outside is refused, however the path is written', async () => {
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
    // Nor does the error reveal whether a directory outside exists.
    for (const cwd of [...roundabout, `${h.project}-of-another`, join(outside, 'no-such')]) {
      expect(await h.fails('claude_code', { prompt: 'never', cwd }, DENIED)).toContain('CLAUDE_CODE_MCP_ALLOWED_DIRS');
    }
    expect(h.model.requests.filter(({ lastUserText }) => lastUserText.includes('never'))).toEqual([]);
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

  it('whose settings file is outside is refused, and no error reveals what a file contains', async () => {
    const { h, outside } = shared;
    await writeFile(join(outside, 'settings.json'), '{}');
    await writeFile(join(h.project, 'notes.txt'), 'root:x:0:0');
    for (const settings of [join(outside, 'settings.json'), '../home/outside/settings.json', '/etc/passwd', '~/x.json'])
      await h.fails('claude_code', { prompt: 'never', settings }, DENIED);
    for (const settings of ['notes.txt', '{"root:x:0:0', 'inside', 'no-such.json'])
      expect(await h.fails('claude_code', { prompt: 'never', settings }, 'INVALID_ARGUMENT')).not.toContain('root');
  });

  it('cannot write through a link whose target does not exist yet', async () => {
    const { h, outside } = shared;
    await symlink(join(outside, 'new.log'), join(h.project, 'debug.log'));
    await h.fails('claude_code', { prompt: 'never', debugFile: 'debug.log' }, DENIED);
  });

  it('inside works, even through a link or `..`, and an answer cannot open a directory outside', async () => {
    const { h, outside, wayIn } = shared;
    h.model.on('touch it').reply(tool('Bash', { command: 'touch asked.txt', description: 'touch' }), text('done'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'touch it', cwd: `${wayIn}/../way-in` });
    const { requestId } = await h.waitForRequest(sessionId);
    const allowing = (directories: string[]): Record<string, unknown> => ({
      action: 'respond_permission',
      sessionId,
      requestId,
      decision: 'allow',
      updatedPermissions: [{ type: 'addDirectories', directories, destination: 'session' }],
    });
    const roundabout = [` ${outside}`, '~', '~/../home/outside', '../../home/outside', `${h.project}/way-out`];
    for (const directory of [outside, ...roundabout]) await h.fails('claude_code_check', allowing([directory]), DENIED);
    await h.ok('claude_code_check', allowing([h.project]));
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
  });
});

it('a server whose own directory is outside needs a cwd, and names the allowed directories', async () => {
  const h = await startHarness({ args: ['--allowed-dirs', '../home'] });
  expect(await h.fails('claude_code', { prompt: 'never' }, DENIED)).toContain(h.home);
  await run(h, { cwd: h.home });
});

// For listing, resuming and forking sessions outside, see `disk-list`.
it('a restarted session has the settings that were checked, and is refused if its directory became a link to the outside', async () => {
  const h = await startHarness({ env: FENCED, args: ['--max-sessions', '1'] });
  const { inside, outside } = await fenceIn(h);
  const deeper = join(inside, 'deeper');
  await mkdir(deeper);
  const claude = await recordingClaude(h.project);
  const settings = join(h.project, 'settings.json');
  await writeFile(settings, JSON.stringify({ permissions: { additionalDirectories: ['deeper'] } }));
  const program = { pathToClaudeCodeExecutable: claude.path };
  const { sessionId } = await run(h, { cwd: inside, settings, enableFileCheckpointing: true, ...program });
  await writeFile(settings, JSON.stringify({ permissions: { additionalDirectories: [outside] } }));
  // Takes the only slot, so that the first session is parked.
  await run(h, {});

  await rename(inside, `${inside}-moved`);
  await symlink(outside, inside);
  await h.fails('claude_code_reply', { sessionId, prompt: 'never' }, DENIED);
  await h.fails('claude_code_reply', { sessionId, prompt: 'never', forkSession: true }, DENIED);
  const toUserMessage = '00000000-0000-4000-8000-000000000000';
  await h.fails('claude_code_session', { action: 'rewind', sessionId, toUserMessage }, DENIED);

  await rm(inside);
  await rename(`${inside}-moved`, inside);
  h.model.on('go on').reply(text('done'));
  await h.ok('claude_code_reply', { sessionId, prompt: 'go on', waitMs: 40_000 });
  const given = claude
    .starts()
    .map(({ argv }) => argv[argv.indexOf('--settings') + 1] ?? '')
    .filter((text) => text.startsWith('{'));
  expect(given).toHaveLength(2);
  for (const text of given) expect(JSON.parse(text).permissions.additionalDirectories).toEqual([deeper]);
});

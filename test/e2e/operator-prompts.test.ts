/** Wherever the operator has set a limit, a prompt is plain text and not a command line. */

import { existsSync, readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { ModelRequest } from '../../src/scripted-model/model-request.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';
import { writesPlan } from './asked-of-people.ts';

const SECRET = 'what nobody was allowed to read';
const DENIED = 'PERMISSION_DENIED';

/** Everything in a prompt that Claude Code would act on by itself. */
function commands(h: Harness): string[] {
  const outside = join(h.home, 'outside', 'secret.txt');
  return [
    '/config permissionMode=acceptEdits',
    '/config permissionMode=auto',
    '/settings permissionMode=acceptEdits',
    '/model haiku',
    '/effort max',
    '/heapdump',
    '/help',
    '!touch by-prompt.txt',
    '#remember this',
    `look at @${outside}`,
    `look。@${outside}`,
    `@" ${outside}"`,
    `@"${outside}"`,
    '@linké',
    '@../home/outside/secret.txt',
    '@secret.txt',
    '@~/outside/secret.txt',
    ' /config permissionMode=acceptEdits',
  ];
}

const open = (options: HarnessOptions): Promise<Harness> => startHarness({ ...options, prepare });

async function prepare(h: Harness): Promise<void> {
  await mkdir(join(h.home, 'outside'));
  await writeFile(join(h.home, 'outside', 'secret.txt'), SECRET);
  await symlink(join(h.home, 'outside', 'secret.txt'), join(h.project, 'linké'));
  h.model.on(/./).always(text('read as text'));
}

function mentions(request: ModelRequest | undefined, words: string): boolean {
  return JSON.stringify(request?.body).includes(words);
}

function settingsOf(h: Harness): unknown {
  const file = join(h.configDir, 'settings.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

/** By prefix. Other limits impose the same as ALLOWED_DIRS, and only try the commands that once got around them. */
const commandsStartingWith =
  (...prefixes: string[]) =>
  (h: Harness): string[] =>
    prefixes.map((prefix) => commands(h).find((command) => command.startsWith(prefix)) ?? '');

async function oldClaude(h: Harness, source: string): Promise<Record<string, unknown>> {
  const program = join(h.home, 'old-claude.mjs');
  await writeFile(program, source);
  return { prompt: 'never', pathToClaudeCodeExecutable: program };
}

describe.each<[string, HarnessOptions, (h: Harness) => string[]]>([
  [
    'APPROVALS=human',
    { env: { CLAUDE_CODE_MCP_APPROVALS: 'human' } },
    commandsStartingWith('/config', '/settings', '/heapdump', '!', '#', '@'),
  ],
  // With room for one session, starting another parks the first.
  ['ALLOWED_DIRS', { args: ['--allowed-dirs', '.', '--max-sessions', '1'] }, commands],
  [
    'DENY_OPTIONS',
    { args: ['--deny-options', 'model,effort,permissionMode'] },
    commandsStartingWith('/model', '/effort', '/config', '!', '#', '@'),
  ],
])('with %s', (limit, options, prompts) => {
  const harness = shareHarness({ ...options, prepare });

  it('slash commands, !, # and @ in a prompt are text', async () => {
    const h = harness();
    const [first = '', ...others] = prompts(h);
    const sessionId = await h.converse(first);
    expect(await h.finish(sessionId)).toMatchObject({ answer: 'read as text' });
    for (const prompt of others)
      expect(await h.ok('claude_code_reply', { sessionId, prompt, waitMs: 40_000 })).toMatchObject({
        result: { result: 'read as text' },
      });
    const asked = h.model.requests.filter(({ purpose }) => purpose === 'conversation');
    expect(asked.map(({ lastUserText }) => lastUserText)).toEqual([first, ...others].map((prompt) => prompt.trim()));
    expect(asked.filter((request) => mentions(request, SECRET))).toHaveLength(0);
    expect(new Set(asked.map(({ model }) => model)).size).toBe(1);
    expect(settingsOf(h)).toBeUndefined();
    expect(existsSync(join(h.project, 'by-prompt.txt'))).toBe(false);
    const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
    expect(sessions[0].permissionMode).toBe('default');
  });

  if (limit !== 'ALLOWED_DIRS') return;

  it('a caller cannot turn this off with an option, a variable, settings or an agent', async () => {
    const h = harness();
    for (const way of [
      { verbatimPrompts: false },
      { env: { CLAUDE_CODE_DISABLE_FILE_MENTIONS: '0' } },
      { settings: { env: { CLAUDE_CODE_DISABLE_FILE_MENTIONS: '' } } },
      { agents: { a: { description: 'd', prompt: 'p', initialPrompt: '/config' } } },
    ]) {
      await h.fails('claude_code', { prompt: 'never', ...way }, DENIED);
    }
    expect(h.model.requests.filter(({ lastUserText }) => lastUserText.includes('never'))).toEqual([]);
  });

  // Without a limit it is started: see below.
  it('a Claude Code too old to support this is not started', async () => {
    const h = harness();
    const old = await oldClaude(h, "if (process.argv.includes('--version')) console.log('2.1.247 (Claude Code)');\n");
    expect(await h.fails('claude_code', old, DENIED)).toContain('2.1.247');
    const silent = await oldClaude(h, '// says nothing\n');
    expect(await h.fails('claude_code', silent, DENIED)).toContain('does not report its version');
  });

  // For a spare process, see `prewarm`.
  it('a message that is queued, or sent to a fork or a parked session, is text too', async () => {
    const h = harness();
    const [queued = '', forked = '', parked = ''] = ['acceptEdits', 'auto', 'dontAsk'].map(
      (mode) => `/config permissionMode=${mode}`,
    );
    const held = gate(text('worked'));
    h.model.on('work').reply(held);
    const sessionId = await h.converse('work');
    await held.arrived;
    await h.ok('claude_code_reply', { sessionId, prompt: queued, whenBusy: 'queue' });
    held.release();
    await h.waitUntilRest(sessionId);
    await h.ok('claude_code_reply', { sessionId, prompt: forked, waitMs: 40_000, forkSession: true });
    // Parked when the fork started.
    await h.ok('claude_code_reply', { sessionId, prompt: parked, waitMs: 40_000 });
    expect(settingsOf(h)).toBeUndefined();
    for (const command of [queued, forked, parked])
      expect(h.model.requests.some(({ lastUserText }) => lastUserText === command)).toBe(true);
  });
});

describe('where a limit is set', () => {
  it('CLAUDE.md files, skills and plan review still work', async () => {
    const h = await startHarness({ args: ['--deny-options', 'model'] });
    await writeFile(join(h.configDir, 'CLAUDE.md'), 'the rule of the user');
    await writeFile(join(h.project, 'CLAUDE.md'), 'the rule of the project');
    await mkdir(join(h.project, 'nested'));
    await writeFile(join(h.project, 'nested', 'CLAUDE.md'), 'the rule of the nested directory');
    await writeFile(join(h.project, 'nested', 'file.txt'), 'content');
    const skill = join(h.project, '.claude', 'skills', 'greet');
    await mkdir(skill, { recursive: true });
    await writeFile(join(skill, 'SKILL.md'), '---\nname: greet\ndescription: greets people\n---\nSay good morning.\n');
    const script = h.model
      .on('plan it')
      .reply(
        tool('Read', { file_path: join(h.project, 'nested', 'file.txt') }),
        tool('Skill', { skill: 'greet' }),
        writesPlan('# The plan'),
        tool('ExitPlanMode'),
        text('planned'),
      );
    const sessionId = await h.begin('plan it', { permissionMode: 'plan' });
    for (;;) {
      const { id, type, shown } = await h.nextRequest(sessionId);
      await h.allow(sessionId, { requestId: id });
      if (type !== 'plan_review') continue;
      expect(shown).toBe('# The plan');
      break;
    }
    expect(await h.finish(sessionId)).toMatchObject({ answer: 'planned' });
    const [first, ...later] = h.model.requestsFor(script);
    for (const rule of ['the rule of the user', 'the rule of the project']) expect(mentions(first, rule)).toBe(true);
    for (const read of ['the rule of the nested directory', 'greets people', 'Say good morning.'])
      expect(mentions(later.at(-1), read), read).toBe(true);
  });
});

it('without a limit, prompts work as in the terminal', async () => {
  const h = await open({});
  await h.fails('claude_code', await oldClaude(h, '// says nothing\n'), 'INTERNAL');
  const prompt = `look at @${join(h.home, 'outside', 'secret.txt')}`;
  const { sessionId } = await h.ok('claude_code', { prompt, waitMs: 40_000 });
  expect(h.model.requests.some((request) => mentions(request, SECRET))).toBe(true);
  const { result } = await h.ok('claude_code_reply', { sessionId, prompt: '/help', waitMs: 40_000 });
  expect(result.result).not.toBe('read as text');
  await h.ok('claude_code_reply', { sessionId, prompt: '/config permissionMode=acceptEdits', waitMs: 40_000 });
  expect(settingsOf(h)).toBeDefined();
});

it('with APPROVALS=human, the explicit toolset starts in the default mode, whatever the settings say', async () => {
  const settings = { permissions: { defaultMode: 'acceptEdits' } };
  const h = await startHarness({ toolset: 'explicit', env: { CLAUDE_CODE_MCP_APPROVALS: 'human' }, settings });
  h.model.on('make it').reply(tool('Write', { file_path: join(h.project, 'made.txt'), content: 'x' }), text('tried'));
  const sessionId = await h.begin('make it');
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'tried' });
  expect(existsSync(join(h.project, 'made.txt'))).toBe(false);
  await h.restartServer();
  h.model.on('again').reply(tool('Write', { file_path: join(h.project, 'made.txt'), content: 'x' }), text('again'));
  await h.say(sessionId, 'again');
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'again' });
  expect(existsSync(join(h.project, 'made.txt'))).toBe(false);
});

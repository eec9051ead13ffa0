/** How options may be given: nested or flat, without contradictions, with known names and valid values. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SDK_OPTIONS, type OptionClass } from '../../src/driver/options-table.ts';
import {
  ADVANCED_OPTION_NAMES,
  COMMON_OPTION_NAMES,
  type SessionOptionName,
} from '../../src/schema/session-options.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { openHarness, type Harness } from '../harness/open-harness.ts';
import { recordingClaude, type RecordingClaude } from '../harness/recording-claude.ts';

let h: Harness;
let claude: RecordingClaude;

beforeAll(async () => {
  h = await openHarness();
  claude = await recordingClaude(h.home);
});

afterAll(() => h.close(), 40_000);

const start = (args: Record<string, unknown>): Record<string, unknown> => ({
  prompt: 'never asked',
  cwd: h.project,
  pathToClaudeCodeExecutable: claude.path,
  ...args,
});

async function refused(args: Record<string, unknown>): Promise<string> {
  const before = claude.starts().length;
  const message = await h.fails('claude_code', start(args), 'INVALID_ARGUMENT');
  expect(claude.starts()).toHaveLength(before);
  expect((await h.ok('claude_code_session', { action: 'list' })).sessions).not.toContainEqual(
    expect.objectContaining({ status: 'error' }),
  );
  return message;
}

describe('an option that is not given', () => {
  it('is not passed to Claude Code', async () => {
    h.model.on('a bare start').reply(text('done'));
    const before = claude.starts().length;
    await h.ok('claude_code', start({ prompt: 'a bare start', waitMs: 40_000 }));
    const [bare] = claude.starts().slice(before);
    expect(bare?.argv).toEqual([
      '--output-format',
      'stream-json',
      '--verbose',
      '--input-format',
      'stream-json',
      '--permission-prompt-tool=stdio',
      '--permission-mode=default',
      expect.stringMatching(/^--session-id=[0-9a-f-]{36}$/),
    ]);
    expect(bare?.input()[0].request).toEqual({ subtype: 'initialize' });
  });
});

describe('the nested and the flat form of an option', () => {
  it('mean the same, and may be mixed', async () => {
    h.model.on('two forms').reply(text('done'));
    const before = claude.starts().length;
    await h.ok('claude_code', {
      prompt: 'two forms',
      cwd: h.project,
      waitMs: 40_000,
      effort: 'low',
      title: 'the same twice',
      advanced: { pathToClaudeCodeExecutable: claude.path, maxBudgetUsd: 2, title: 'the same twice' },
    });
    const [started] = claude.starts().slice(before);
    expect(started?.argv).toEqual(expect.arrayContaining(['--effort=low', '--max-budget-usd=2']));
    expect(started?.input()[0].request.title).toBe('the same twice');
  });

  it('may not contradict each other', async () => {
    expect(await refused({ effort: 'low', advanced: { effort: 'high' } })).toContain('effort is given twice');
    const twice = { env: { A: '1' }, advanced: { env: { A: '2' } } };
    expect(await refused(twice)).toContain('env is given twice');
  });
});

describe('an option name', () => {
  it.each([
    ['settingSource', { settingSource: ['user'] }, 'settingSources'],
    ['allowed_tools', { allowed_tools: ['Read'] }, 'allowedTools'],
    ['advanced.maxBudgetUSD', { advanced: { maxBudgetUSD: 1 } }, 'maxBudgetUsd'],
    ['advanced.cwd', { advanced: { cwd: '/' } }, 'cwd'],
  ])('%s is refused with a suggestion', async (name, args, nearest) => {
    expect(await refused(args)).toContain(`Unknown parameter ${name}; did you mean ${nearest}?`);
  });

  it('that resembles no other is refused without a suggestion', async () => {
    expect(await refused({ xyzzy: 1 })).toBe('Unknown parameter xyzzy.');
  });

  const notOffered = (Object.entries(SDK_OPTIONS) as [string, OptionClass][]).flatMap(([name, option]) =>
    option.kind === 'exposed' ? [] : [[name, option.why] as const],
  );

  it.each(notOffered)('%s, which is not offered, is refused with the reason', async (name, why) => {
    expect(await refused({ [name]: {} })).toBe(`Parameter ${name} is not offered: ${why}.`);
    expect(await refused({ advanced: { [name]: {} } })).toBe(`Parameter advanced.${name} is not offered: ${why}.`);
  });
});

/** Invalid values, by option. */
const BAD_VALUES: Record<SessionOptionName, readonly unknown[]> = {
  additionalDirectories: ['lib', [''], ['no/such/directory'], [1]],
  agent: ['', 1],
  agentProgressSummaries: ['yes'],
  agents: [[], { a: {} }, { a: { description: 1, prompt: 'p' } }],
  allowedTools: ['Read', [''], [1]],
  betas: ['beta', [1]],
  cwd: ['', 1, 'no/such/directory', 'a\0b'],
  debug: ['on'],
  debugFile: ['', 1],
  disallowedTools: ['Read', {}],
  effort: ['extreme', 1],
  enableFileCheckpointing: [1],
  env: [[], { A: 1 }, { '': 'x' }],
  fallbackModel: ['', ['a']],
  forwardSubagentText: ['true'],
  includeHookEvents: ['yes'],
  includePartialMessages: [0],
  maxBudgetUsd: [0, -1, '1'],
  maxTurns: [0, 1.5, '3'],
  mcpServers: [[], { s: {} }, { s: { type: 'sdk', name: 's' } }, { s: { type: 'http' } }],
  model: ['', 4],
  outputFormat: [{ type: 'text' }, { type: 'json_schema' }, 'json'],
  pathToClaudeCodeExecutable: ['', '/no/such/claude', 1],
  permissionMode: ['yolo', ''],
  permissionRequestTimeoutMs: [-1, 1.5, 2 ** 31],
  persistSession: ['no'],
  planModeInstructions: ['', 1],
  pluginDelivery: ['mail'],
  plugins: [{}, [{ type: 'remote', path: 'p' }], [{ type: 'local' }]],
  projectConfigRoot: ['', 'no/such/directory'],
  promptSuggestions: ['x'],
  sandbox: [true, []],
  sessionInitTimeoutMs: [0, -5, 2 ** 31],
  settingSources: ['user', ['managed']],
  settings: ['', 'no/such/settings.json', '{ not json', 1],
  skills: ['some', [1]],
  strictMcpConfig: ['x'],
  systemPrompt: [1, { type: 'preset' }, { type: 'preset', preset: 'claude_code', prepend: 'x' }],
  taskBudget: [5, { total: 0 }, {}],
  thinking: ['on', { type: 'maybe' }, { type: 'enabled', budgetTokens: 0 }],
  title: ['', 1],
  toolAliases: [[], { A: 1 }],
  toolConfig: ['x', []],
  tools: ['Bash', [1], { type: 'preset' }],
  verbatimPrompts: ['x'],
  workspace: ['worktree', {}, { type: 'clone' }, { type: 'worktree', base: '' }, { type: 'worktree', path: '/' }],
};

describe('invalid values', () => {
  it.each(Object.entries(BAD_VALUES))('of %s are refused by name, and nothing is started', async (name, values) => {
    for (const value of values) expect(await refused({ [name]: value })).toContain(name);
  });

  it('are all named in one error', async () => {
    const message = await refused({ maxTurns: 0, effort: 'extreme', typo: 1 });
    for (const name of ['maxTurns', 'effort', 'typo']) expect(message).toContain(name);
  });

  it('in a settings file are refused with its path', async () => {
    expect(await refused({ settings: '/etc/passwd' })).toContain('settings: /etc/passwd is not a JSON object.');
  });

  it('that contradict another option are refused too', async () => {
    expect(await refused({ model: 'claude-opus-4-6', fallbackModel: 'claude-opus-4-6' })).toContain('fallbackModel');
  });

  it('are listed here for every option', () => {
    expect(Object.keys(BAD_VALUES).sort()).toEqual([...COMMON_OPTION_NAMES, ...ADVANCED_OPTION_NAMES].sort());
  });
});

describe('the server’s own options', () => {
  it('permissionRequestTimeoutMs sets when a request expires', async () => {
    h.model.on('ask in time').always(tool('Bash', { command: 'touch asked.txt', description: 'touch' }));
    const requestWith = async (permissionRequestTimeoutMs: number): Promise<Record<string, string>> => {
      const args = start({ prompt: 'ask in time', permissionRequestTimeoutMs });
      const { sessionId } = await h.ok('claude_code', args);
      const request = await h.waitForRequest(sessionId);
      await h.ok('claude_code_session', { action: 'cancel', sessionId });
      return request;
    };
    const { createdAt, expiresAt } = await requestWith(90_000);
    expect(Date.parse(expiresAt ?? '') - Date.parse(createdAt ?? '')).toBe(90_000);
    expect(await requestWith(0)).not.toHaveProperty('expiresAt');
  });

  it('sessionInitTimeoutMs ends a start that never becomes ready', async () => {
    const mute = join(h.home, 'mute.mjs');
    await writeFile(mute, 'process.stdin.resume();');
    await chmod(mute, 0o755);
    const args = start({ pathToClaudeCodeExecutable: mute, sessionInitTimeoutMs: 300 });
    expect(await h.fails('claude_code', args, 'TIMEOUT')).toContain('300 ms');
    expect((await h.ok('claude_code_session', { action: 'list' })).sessions).not.toContainEqual(
      expect.objectContaining({ status: 'running' }),
    );
  });
});

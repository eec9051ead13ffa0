/** Who may grant permissions: bypassPermissions, denied options, a caller's answers, and what is up to a person. */

import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { classOf } from '../../src/driver/options-table.ts';
import {
  ADVANCED_OPTION_NAMES,
  COMMON_OPTION_NAMES,
  type SessionOptionName,
} from '../../src/schema/session-options.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import { openHarness, type Harness } from '../harness/open-harness.ts';
import { auditedEntries } from './forms-support.ts';

const DENIED = 'PERMISSION_DENIED';
const touch = tool('Bash', { command: 'touch made.txt', description: 'make a file' });
const helper = { description: 'helps', prompt: 'help' };

const bypass = { permissions: { defaultMode: 'bypassPermissions' } };

/** A server with default settings. */
const plain = shareHarness();

// For what ALLOW_BYPASS allows, in a start and a reply, see `start`.
describe('without ALLOW_BYPASS', () => {
  it.each<[string, Record<string, unknown>]>([
    ['as permission mode', { permissionMode: 'bypassPermissions' }],
    ['in an agent', { agents: { helper: { ...helper, permissionMode: 'bypassPermissions' } } }],
    ['in settings', { settings: bypass }],
    ['in settings as a string', { settings: ` ${JSON.stringify(bypass)}` }],
    ['in a settings file', { settings: 'bypass.json' }],
    ['by a variable', { env: { CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS: '1' } }],
    ['by a variable in settings', { settings: { env: { CLAUDE_CODE_MANAGED_SETTINGS_PATH: '/tmp' } } }],
    ['by rules in a variable', { advanced: { env: { claude_bg_session_permission_rules: '[]' } } }],
  ])('bypassPermissions %s is refused', async (_where, options) => {
    const h = plain();
    await writeFile(join(h.project, 'bypass.json'), JSON.stringify(bypass));
    await h.fails('claude_code', { prompt: 'never', ...options }, DENIED);
    expect(h.model.requests.filter(({ lastUserText }) => lastUserText.includes('never'))).toEqual([]);
  });

  it.each<[string, Record<string, unknown>]>([
    ['env', { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: '1' } }],
    ['env in lower case', { env: { claude_code_mcp_depth: '0' } }],
    ['settings', { settings: { env: { CLAUDE_CODE_MCP_RESUME_SECRET: 'mine' } } }],
    ['a server', { mcpServers: { s: { command: 'x', env: { CLAUDE_CODE_MCP_DEPTH: '0' } } } }],
    [
      'a server of an agent',
      { agents: { a: { ...helper, mcpServers: [{ s: { command: 'x', env: { CLAUDE_CODE_MCP_OWNER: 'me' } } }] } } },
    ],
  ])('the operator’s variables cannot be set through %s', async (_where, options) => {
    expect(await plain().fails('claude_code', { prompt: 'never', ...options }, DENIED)).toContain('operator');
  });
});

const makes = (name: string) => tool('Bash', { command: `touch ${name}`, description: 'make a file' });
const RULE = { toolName: 'Bash', ruleContent: 'touch second.txt' };

/** A session that makes two files, with the request for the first one open. */
async function startAsking(
  h: Harness,
  begin: (prompt: string) => Promise<string>,
): Promise<{ sessionId: string; answer: Record<string, unknown> }> {
  h.model.on('make both').reply(makes('first.txt'), makes('second.txt'), text('made'));
  const sessionId = await begin('make both');
  const { requestId } = await h.waitForRequest(sessionId);
  return { sessionId, answer: { action: 'respond_permission', sessionId, requestId, decision: 'allow' } };
}

describe('DENY_OPTIONS', () => {
  async function expectDenied(h: Harness): Promise<void> {
    for (const options of [
      { env: { A: '1' } },
      { advanced: { env: {} } },
      { model: 'claude-opus-4-6' },
      { permissionMode: 'plan' },
      { cwd: '.' },
    ]) {
      const message = await h.fails('claude_code', { prompt: 'never', ...options }, DENIED);
      expect(message).toContain('CLAUDE_CODE_MCP_DENY_OPTIONS');
    }
  }

  it('refuses options, nested or flat, in a start, a reply and a resume from disk, but not the directory that a session was in; an answer cannot grant what a denied option would', async () => {
    const env = {
      CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1',
      CLAUDE_CODE_MCP_RESUME_SECRET: 'the secret of the test',
    };
    const deny = 'advanced.env,model,permissionMode,cwd,allowedTools,additionalDirectories,disallowedTools';
    const h = await startHarness({ env, args: ['--deny-options', deny] });
    await expectDenied(h);
    // Denied options keep their defaults.
    const { sessionId, resumeToken } = await h.ok('claude_code', { prompt: 'say hello', ...hello(h) });
    for (const options of [
      { model: 'claude-opus-4-6' },
      { permissionMode: 'plan' },
      { env: { A: '1' } },
      { diskResumeConfig: { model: 'claude-opus-4-6' } },
    ]) {
      await h.fails('claude_code_reply', { sessionId, prompt: 'never', ...options }, DENIED);
    }

    const { answer } = await startAsking(h, async (prompt) => (await h.say(sessionId, prompt)).sessionId);
    const destination = 'session';
    for (const update of [
      { type: 'setMode', mode: 'acceptEdits', destination },
      { type: 'addRules', rules: [RULE], behavior: 'allow', destination },
      { type: 'replaceRules', rules: [RULE], behavior: 'allow', destination },
      { type: 'addRules', rules: [RULE], behavior: 'deny', destination },
      { type: 'addDirectories', directories: ['/tmp'], destination },
    ]) {
      const args = { ...answer, updatedPermissions: [update] };
      expect(await h.fails('claude_code_check', args, DENIED)).toContain('CLAUDE_CODE_MCP_DENY_OPTIONS');
    }
    await h.fails('claude_code_check', { ...answer, always: true }, DENIED);
    await h.ok('claude_code_check', { ...answer, decision: 'deny' });
    await h.deny(sessionId);
    await h.waitUntilRest(sessionId);

    const denied = 'env, model,permissionMode,cwd,extraArgs';
    await h.restartServer({ args: [], env: { CLAUDE_CODE_MCP_DENY_OPTIONS: denied } });
    await expectDenied(h);
    const reply = { sessionId, resumeToken, prompt: 'say hello', ...hello(h) };
    await h.fails('claude_code_reply', { ...reply, diskResumeConfig: { advanced: { env: { A: '1' } } } }, DENIED);
    await h.fails('claude_code_reply', { ...reply, cwd: h.project }, DENIED);
    expect(await h.ok('claude_code_reply', reply)).toMatchObject({ sessionId, status: 'idle' });
  });
});

it('permissions in an answer apply to this session only, whatever destination it names, with a warning', async () => {
  const h = plain();
  const { answer, sessionId } = await startAsking(h, (prompt) => h.converse(prompt));
  const updatedPermissions = ['userSettings', 'projectSettings', 'localSettings'].map((destination) => ({
    type: 'addRules',
    rules: [RULE],
    behavior: 'allow',
    destination,
  }));
  const { warnings } = await h.ok('claude_code_check', { ...answer, updatedPermissions });
  expect(warnings).toHaveLength(3);
  expect(warnings[0]).toContain('this session only');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'made' } });
  expect(existsSync(join(h.project, 'second.txt'))).toBe(true);
  expect(existsSync(join(h.configDir, 'settings.json'))).toBe(false);
  expect(existsSync(join(h.project, '.claude'))).toBe(false);
});

it('always: true allows harmless rules that Claude Code suggests, for this session only', async () => {
  const h = plain();
  h.model.on('make it twice').reply(makes('twice.txt'), makes('twice.txt'), text('made'));
  const sessionId = await h.converse('make it twice');
  const { requestId, suggestions } = await h.waitForRequest(sessionId);
  expect(suggestions).toContainEqual(expect.objectContaining({ type: 'addRules', destination: 'localSettings' }));
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow' };
  await h.fails('claude_code_check', { ...answer, decision: 'deny', always: true }, 'INVALID_ARGUMENT');
  expect(await h.ok('claude_code_check', { ...answer, permissionOptions: { always: true } })).not.toHaveProperty(
    'warnings',
  );
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'made' } });
  expect(existsSync(join(h.project, '.claude'))).toBe(false);
});

it('always: true on a command that could run anything allows exactly that command', async () => {
  const h = plain();
  const before = Date.now();
  const run = (command: string) => tool('Bash', { command, description: 'run it' });
  const piped = 'echo touch piped.txt | sh';
  const others = ['echo touch evil.txt | sh', 'sh evil.sh', `${piped} -x`, `${piped} && touch evil.txt`];
  h.model.on('run it').reply(run(piped), run(piped), ...others.map(run), run(piped), text('done'));
  const sessionId = await h.converse('run it');
  const { requestId, alwaysAllows } = await h.waitForRequest(sessionId);
  expect(alwaysAllows).toBe('exactly this command (this session only)');
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow', always: true };
  expect(await h.ok('claude_code_check', answer)).not.toHaveProperty('warnings');
  for (const command of others) {
    expect((await h.waitForRequest(sessionId)).input.command).toBe(command);
    await h.deny(sessionId);
  }
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
  expect(existsSync(join(h.project, 'piped.txt'))).toBe(true);
  expect(existsSync(join(h.project, 'evil.txt'))).toBe(false);
  const isDecision = ({ kind, session, time }: Json): boolean =>
    kind === 'decision' && session === sessionId && Date.parse(time) >= before;
  const decisions = await auditedEntries(h, isDecision, 7);
  expect(decisions.map(({ who, outcome, details }) => [who, outcome, details.always === true])).toEqual([
    ['caller', 'allow', false],
    ['caller', 'allow', true],
    ...others.map(() => ['caller', 'deny', false]),
    ['caller', 'allow', true],
  ]);
});

it('always: true allows once, with a warning, when Claude Code suggests only a mode', async () => {
  const h = plain();
  const write = (name: string) => tool('Write', { file_path: join(h.project, name), content: 'x' });
  h.model.on('write two').reply(write('third.txt'), write('fourth.txt'), text('written'));
  const sessionId = await h.converse('write two');
  const { requestId, suggestions } = await h.waitForRequest(sessionId);
  expect(suggestions).toMatchObject([{ type: 'setMode' }]);
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow', always: true };
  expect(await h.ok('claude_code_check', answer)).toMatchObject({ warnings: [expect.stringContaining('once')] });
  await h.deny(sessionId);
  await h.waitUntilRest(sessionId);
  expect(existsSync(join(h.project, 'fourth.txt'))).toBe(false);
});

/** For each granting option, values that would give a caller permissions or run something for it. */
const GRANTS: Partial<Record<SessionOptionName, readonly unknown[]>> = {
  additionalDirectories: [['.']],
  agent: ['somebody'],
  agents: [
    { a: { ...helper, tools: ['Bash'] } },
    { a: { ...helper, permissionMode: 'default' } },
    { a: { ...helper, mcpServers: ['s'] } },
    { a: { ...helper, skills: ['s'] } },
    { a: { ...helper, initialPrompt: '/run' } },
    { a: { ...helper, hooks: {} } },
  ],
  allowedTools: [['Read']],
  debugFile: ['debug.log'],
  env: [{ A: '1' }],
  mcpServers: [{ s: { command: 'x' } }],
  pathToClaudeCodeExecutable: ['claude'],
  permissionMode: ['acceptEdits', 'auto', 'bypassPermissions'],
  plugins: [[{ type: 'local', path: '.' }]],
  projectConfigRoot: ['.'],
  sandbox: [
    { enabled: false },
    { enabled: true },
    { enabled: true, autoAllowBashIfSandboxed: true },
    { excludedCommands: ['x'] },
  ],
  settingSources: [[], ['project'], ['user', 'project']],
  settings: [{ permissions: { allow: ['Bash'] } }, '{"hooks":{}}', 'settings.json'],
  skills: ['all', ['s']],
  toolAliases: [{ Read: 'Bash' }],
};

describe('APPROVALS=human', () => {
  let h: Harness;

  beforeAll(async () => {
    // What the person's own settings allow stays allowed.
    const settings = { permissions: { allow: ['Bash(touch allowed-by-me.txt)'] } };
    h = await openHarness({ env: { CLAUDE_CODE_MCP_APPROVALS: 'human' }, settings });
  });
  afterAll(() => h.close(), 40_000);

  it('every option marked as granting has a value here', () => {
    const marked = [...COMMON_OPTION_NAMES, ...ADVANCED_OPTION_NAMES].filter(
      (name) => classOf(name).grants !== undefined,
    );
    expect(Object.keys(GRANTS).sort()).toEqual(marked.sort());
  });

  it.each(Object.entries(GRANTS))('refuses %s', async (name, values) => {
    for (const value of values) {
      const message = await h.fails('claude_code', { prompt: 'never', [name]: value }, DENIED);
      expect(message).toContain(name);
    }
    expect(h.model.requests.filter(({ lastUserText }) => lastUserText.includes('never'))).toEqual([]);
  });

  it('accepts options that grant nothing', async () => {
    await h.ok('claude_code', {
      prompt: 'say hello',
      ...hello(h),
      allowedTools: [],
      disallowedTools: ['WebFetch'],
      permissionMode: 'dontAsk',
      model: 'claude-opus-4-6',
      effort: 'low',
      maxTurns: 3,
      systemPrompt: 'Be brief.',
      additionalDirectories: [],
      agents: { a: { ...helper, model: 'inherit', maxTurns: 2 } },
      agent: 'a',
      env: {},
      mcpServers: {},
      plugins: [],
      settings: {},
      settingSources: ['local', 'project', 'user'],
      skills: [],
      toolAliases: {},
      strictMcpConfig: true,
    });
  });

  it('runs what the person’s own settings allow and denies everything else with the reason; neither a reply nor a caller’s answer grants more', async () => {
    const allowed = tool('Bash', { command: 'touch allowed-by-me.txt', description: 'make a file' });
    const script = h.model.on('make both').reply(allowed, touch, text('made one'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'make both', waitMs: 40_000 });
    await h.waitUntilRest(sessionId);
    expect(existsSync(join(h.project, 'allowed-by-me.txt'))).toBe(true);
    expect(existsSync(join(h.project, 'made.txt'))).toBe(false);
    expect(h.model.requestsFor(script).at(-1)?.toolResults[0]).toMatchObject({
      isError: true,
      text: expect.stringContaining('Only a person may decide this here'),
    });

    const reply = { sessionId, prompt: 'say hello', ...hello(h) };
    for (const way of [{}, { forkSession: true }])
      await h.fails('claude_code_reply', { ...reply, ...way, permissionMode: 'acceptEdits' }, DENIED);
    expect(await h.ok('claude_code_reply', { ...reply, permissionMode: 'plan' })).toMatchObject({ status: 'idle' });
    const answer = { action: 'respond_permission', sessionId, requestId: 'any', decision: 'allow' };
    const updatedPermissions = [{ type: 'setMode', mode: 'default', destination: 'session' }];
    for (const args of [answer, { ...answer, updatedPermissions }, { ...answer, decision: 'deny' }]) {
      expect(await h.fails('claude_code_check', args, DENIED)).toContain('CLAUDE_CODE_MCP_APPROVALS');
    }
  });
});

describe('the repository that a session works in', () => {
  const hook = { hooks: [{ type: 'command', command: 'touch hook-ran.txt' }] };

  async function repository(h: Harness, name: string, settings: object): Promise<string> {
    const cwd = join(h.project, name);
    await mkdir(join(cwd, '.claude', 'agents'), { recursive: true });
    await writeFile(join(cwd, '.claude', 'settings.json'), JSON.stringify(settings));
    return cwd;
  }

  it('can run hooks, but cannot turn permissions off; neither a reply nor an answer can switch to bypassPermissions', async () => {
    const h = plain();
    const cwd = await repository(h, 'eager', { ...bypass, hooks: { SessionStart: [hook] } });
    const agent = '---\nname: eager\ndescription: eager\npermissionMode: bypassPermissions\n---\nYou are eager.\n';
    await writeFile(join(cwd, '.claude', 'agents', 'eager.md'), agent);
    h.model.on('make it').reply(touch, text('made'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'make it', agent: 'eager', cwd });
    const { requestId, toolName } = await h.waitForRequest(sessionId);
    expect(toolName).toBe('Bash');
    expect(existsSync(join(cwd, 'hook-ran.txt'))).toBe(true);
    expect(existsSync(join(cwd, 'made.txt'))).toBe(false);

    const updatedPermissions = [{ type: 'setMode', mode: 'bypassPermissions', destination: 'session' }];
    const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow' };
    await h.fails('claude_code_check', { ...answer, updatedPermissions }, DENIED);
    await h.ok('claude_code_check', answer);
    await h.waitUntilRest(sessionId);
    const reply = { sessionId, prompt: 'never', permissionMode: 'bypassPermissions' };
    expect(await h.fails('claude_code_reply', reply, DENIED)).toContain('CLAUDE_CODE_MCP_ALLOW_BYPASS');
    await h.fails('claude_code_reply', { ...reply, forkSession: true }, DENIED);
  });

  it('has its settings ignored with settingSources []', async () => {
    const h = plain();
    const cwd = await repository(h, 'left-out', { hooks: { SessionStart: [hook] } });
    await h.ok('claude_code', { prompt: 'say hello', settingSources: [], cwd, ...hello(h) });
    expect(existsSync(join(cwd, 'hook-ran.txt'))).toBe(false);
  });

  // For a session in the configured mode, see `explicit-create`.
});

function hello(h: Harness): { waitMs: number } {
  h.model.on('say hello').reply(text('hello'));
  return { waitMs: 40_000 };
}

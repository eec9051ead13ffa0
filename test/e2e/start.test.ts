import { existsSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Variant } from '../harness/requirements.ts';
import type { ToolCall, Toolset } from '../harness/toolsets.ts';
import { verifies } from './requirements.ts';
import { check } from './steps.ts';

/** Everything a start returns besides the id. */
const EFFECTIVE: unknown = expect.stringContaining('permissionMode default; cwd /');
const STARTED: Readonly<Record<Toolset, object>> = {
  compact: { status: 'running', pollInterval: 3000, nextCursor: expect.any(Number), effective: EFFECTIVE },
  explicit: { status: 'running', effective: EFFECTIVE },
};

const touch = (file: string) => tool('Bash', { command: `touch ${file}`, description: `make ${file}` });

const ids = async (h: Harness): Promise<unknown> =>
  (await h.ok(...h.dialect.listMachine())).sessions.map(({ sessionId }: Json) => sessionId);

/** Expects that the attempts leave no session behind. */
async function expectNoNewSession(h: Harness, attempt: () => Promise<void>): Promise<void> {
  const before = await ids(h);
  await attempt();
  expect(await ids(h)).toEqual(before);
}

verifies(['start.returns-at-once', 'start.one-required-parameter', 'start.default-directory'], async (variant) => {
  const h = await variant.share();
  const held = gate(text('done'));
  h.model.on('--version and more').reply(tool('Bash', { command: 'pwd' }), held);
  const answer = await h.ok(...h.dialect.start('--version and more'));
  expect(answer).toEqual({ sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/), ...STARTED[variant.toolset] });
  const asked = await held.arrived;
  expect(asked.toolResults[0]?.text).toBe(h.project);
  expect(asked.lastUserText).toBe('--version and more');
  held.release();
  expect(await h.finish(answer.sessionId)).toMatchObject({ status: 'rest', answer: 'done' });
});

verifies(
  ['start.returns-at-once', 'start.wait', 'start.structured-output'],
  { toolsets: ['compact'], when: 'with several starts at once' },
  async (variant) => {
    const h = await variant.share();
    h.model.on('make a file').reply(touch('a.txt'), text('done'));
    h.model.on('how many').reply(tool('StructuredOutput', { count: 3 }), text('three'));
    const schema = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };
    const outputFormat = { type: 'json_schema', schema };
    const noSchema = { type: 'json_schema', schema: { type: 'number of files' } };
    const refused = h.fails(
      'claude_code',
      { prompt: 'how many', advanced: { outputFormat: noSchema } },
      'INVALID_ARGUMENT',
    );
    expect(await refused).toContain('outputFormat.schema is not a valid JSON Schema: data/type must be');
    const waitMs = 40_000;
    const [asks, counted] = await Promise.all([
      h.ok('claude_code', { prompt: 'make a file', waitMs }),
      h.ok('claude_code', { prompt: 'how many', waitMs, advanced: { outputFormat } }),
    ]);
    expect(asks.sessionId).not.toBe(counted.sessionId);
    expect(asks).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
    await h.allow(asks.sessionId);
    expect(await h.finish(asks.sessionId)).toMatchObject({ answer: 'done' });

    const { sessionId } = counted;
    expect(counted).toMatchObject({
      sessionId: expect.any(String),
      status: 'idle',
      result: { isError: false, structuredOutput: { count: 3 } },
    });
    expect(counted).not.toHaveProperty('events');
    const without = await check(h, { action: 'poll', sessionId, includeStructuredOutput: false });
    expect(without.result).not.toHaveProperty('structuredOutput');
  },
);

verifies(['start.blank-prompt', 'start.no-such-directory'], async (variant) => {
  const h = await variant.share();
  await expectNoNewSession(h, async () => {
    const [tool] = h.dialect.start('');
    for (const prompt of ['', ' \n\t', undefined, 7]) {
      expect(await h.fails(tool, { prompt }, 'INVALID_ARGUMENT')).toContain('prompt');
    }
    await writeFile(join(h.project, 'file.txt'), '');
    for (const cwd of [join(h.project, 'no', 'such', 'place'), join(h.project, 'file.txt')]) {
      const { isError, data } = await h.call(...h.dialect.start('hello', { cwd }));
      expect(isError).toBe(true);
      expect(data).toMatchObject({ sessionId: '', isError: true });
      expect(data.error).toMatch(/^Error \[INVALID_ARGUMENT\]: /);
      expect(data.error).toContain(cwd);
    }
  });
});

verifies(
  ['start.options', 'start.effective', 'start.allowed-tools', 'start.disallowed-wins', 'reply.after-failure'],
  async (variant) => {
    const h = await variant.share();
    const cwd = join(h.project, 'elsewhere');
    await mkdir(cwd);
    const together = touch('here.txt').tool('Bash', { command: 'mkdir sub' });
    const script = h.model.on('go').reply(together, touch('there.txt'));
    const options = {
      cwd: 'elsewhere',
      model: 'claude-sonnet-4-6',
      permissionMode: 'acceptEdits',
      allowedTools: ['Bash(touch *)', 'Bash(mkdir *)'],
      disallowedTools: ['WebFetch', 'Bash(mkdir *)'],
      maxTurns: 1,
    } as const;
    const { sessionId, effective } = await h.ok(...h.dialect.start('go', options));
    expect(effective).toBe(
      `permissionMode acceptEdits; cwd ${cwd}; allowed Bash(touch *), Bash(mkdir *); disallowed WebFetch, Bash(mkdir *)`,
    );
    // A permission request would end the wait.
    expect(await h.watch(sessionId)).toMatchObject({ status: 'error', error: expect.stringMatching(/turns/) });
    expect(['here.txt', 'sub', 'there.txt'].map((name) => existsSync(join(cwd, name)))).toEqual([true, false, false]);
    const [request] = h.model.requestsFor(script);
    expect(request?.model).toBe('claude-sonnet-4-6');
    expect(request?.tools).not.toContain('WebFetch');

    h.model.on('say more').reply(text('said'));
    await h.say(sessionId, 'say more');
    expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'said', error: undefined });
  },
);

const BYPASS_ALLOWED = { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: '1' } };

/** Every way to ask for it in this toolset. */
const BYPASSES: Readonly<Record<Toolset, (prompt: string) => ToolCall[]>> = {
  compact: (prompt) => [['claude_code', { prompt, permissionMode: 'bypassPermissions' }]],
  explicit: (prompt) => [
    ['claude_create_session', { prompt, permissionMode: 'bypassPermissions' }],
    ['claude_create_session', { prompt, dangerouslySkipPermissions: true }],
  ],
};

async function expectBypass(variant: Variant): Promise<Harness> {
  const { toolset } = variant;
  const strict = await variant.share();
  await expectNoNewSession(strict, async () => {
    for (const call of BYPASSES[toolset]('touch'))
      expect(await strict.fails(...call, 'PERMISSION_DENIED')).toContain('CLAUDE_CODE_MCP_ALLOW_BYPASS');
  });

  const h = await variant.share(BYPASS_ALLOWED);
  for (const [index, call] of BYPASSES[toolset]('touch').entries()) {
    const name = `made-${String(index)}.txt`;
    h.model.on('touch').reply(touch(name), text('made'));
    const { sessionId } = await h.ok(...call);
    expect(await h.watch(sessionId)).toMatchObject({ status: 'rest', answer: 'made' });
    expect(existsSync(join(h.project, name))).toBe(true);
  }
  return h;
}

verifies(
  'start.bypass',
  { toolsets: ['compact'], when: 'and a reply can switch to it only when the session is idle' },
  async (variant) => {
    const h = await expectBypass(variant);
    const held = gate(text('done'));
    h.model.on('work').reply(held);
    const { sessionId } = await h.ok('claude_code', { prompt: 'work' });
    await held.arrived;
    const bypass = { sessionId, permissionMode: 'bypassPermissions' };
    const queued = { ...bypass, prompt: 'never', whenBusy: 'queue' };
    expect(await h.fails('claude_code_reply', queued, 'SESSION_BUSY')).toContain('when it is idle');
    held.release();
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'done' } });

    h.model.on('make it').reply(touch('switched.txt'), text('made'));
    const switched = await h.ok('claude_code_reply', { ...bypass, prompt: 'make it', waitMs: 40_000 });
    expect(switched).toMatchObject({ status: 'idle', result: { result: 'made' } });
    expect(existsSync(join(h.project, 'switched.txt'))).toBe(true);
  },
);

verifies(['start.bypass', 'create.skip-permissions'], async (variant) => {
  const h = await expectBypass(variant);
  const skips = { prompt: 'touch', dangerouslySkipPermissions: true, permissionMode: 'plan' };
  await h.fails('claude_create_session', skips, 'INVALID_ARGUMENT');
});

/** A script in the project that stands in for Claude Code. */
async function standIn(h: Harness, name: string, lines: string[]): Promise<string> {
  const path = join(h.project, name);
  await writeFile(path, ['#!/bin/sh', ...lines, ''].join('\n'));
  await chmod(path, 0o755);
  return path;
}

const FAILS = ['echo "the licence has expired" >&2', 'exit 7'];
const HANGS = ['exec tail -f /dev/null'];

async function expectNothingHangs(h: Harness): Promise<void> {
  await eventually(async () => !(await h.processes()).some(({ command }) => command.includes('/dev/null')), {
    what: 'the hanging process is gone',
  });
}

verifies(
  ['start.no-such-executable', 'start.exits-at-once', 'start.hangs'],
  { when: 'with an executable that the caller names', toolsets: ['compact'] },
  async (variant) => {
    const h = await variant.share();
    const startWith = (pathToClaudeCodeExecutable: string, more: object = {}): ToolCall => [
      'claude_code',
      { prompt: 'hello', advanced: { pathToClaudeCodeExecutable, ...more } },
    ];
    await expectNoNewSession(h, async () => {
      for (const path of ['/no/such/claude', 'no-such-claude-on-the-path']) {
        const { isError, data } = await h.call(...startWith(path));
        expect(isError).toBe(true);
        expect(data).toMatchObject({ sessionId: '', status: 'error' });
        expect(data.error).toContain(path);
      }
      const failed = await h.fails(...startWith(await standIn(h, 'claude-that-fails', FAILS)), 'INTERNAL');
      for (const words of ['the licence has expired', '7']) expect(failed).toContain(words);
      const hanging = startWith(await standIn(h, 'claude-that-hangs', HANGS), { sessionInitTimeoutMs: 300 });
      expect(await h.fails(...hanging, 'TIMEOUT')).toContain('sessionInitTimeoutMs');
      await expectNothingHangs(h);
      const { sessions } = await h.ok('claude_code_session', { action: 'list' });
      expect(sessions).not.toContainEqual(expect.objectContaining({ status: 'error' }));
    });
  },
);

verifies(
  ['start.no-such-executable', 'start.exits-at-once', 'start.hangs'],
  { when: 'with an executable that the operator names', toolsets: ['explicit'] },
  async (variant) => {
    const h = await variant.start({
      env: { CLAUDE_CODE_MCP_EXECUTABLE: './claude', CLAUDE_CODE_MCP_START_TIMEOUT_MS: '3000' },
    });
    const call = h.dialect.start('hello');
    await expectNoNewSession(h, async () => {
      const { isError, data } = await h.call(...call);
      expect(isError).toBe(true);
      expect(data).toMatchObject({ sessionId: '', error: expect.stringContaining(join(h.project, 'claude')) });
      await standIn(h, 'claude', FAILS);
      const failed = await h.fails(...call, 'INTERNAL');
      for (const words of ['the licence has expired', '7']) expect(failed).toContain(words);
      await standIn(h, 'claude', HANGS);
      const message = await h.fails(...call, 'TIMEOUT');
      for (const words of ['within 3000 ms', 'doctor', 'CLAUDE_CODE_MCP_START_TIMEOUT_MS'])
        expect(message).toContain(words);
      await expectNothingHangs(h);
    });
  },
);

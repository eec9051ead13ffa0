import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { asks, COLOUR } from './asked-of-people.ts';
import { check, pollAll, respond, start } from './steps.ts';

/** An MCP server with one tool. */
const ECHO = `import { createInterface } from 'node:readline';
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const results = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1' } },
    'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object', properties: {} } }] },
    'tools/call': { content: [{ type: 'text', text: 'echo' }] },
  };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
}`;

const RULES = { CLAUDE_CODE_MCP_RULES: '~/rules.json', CLAUDE_CODE_MCP_APPROVALS: 'caller' };

function writeRules(h: Harness, ...rules: object[]): void {
  const file = { rules: rules.map((rule) => ({ decision: 'allow', tool: 'Bash', directory: h.project, ...rule })) };
  writeFileSync(join(h.home, 'rules.json'), JSON.stringify(file), { mode: 0o600 });
}

function prepare(h: Harness): void {
  writeRules(
    h,
    ...['make ok', 'make asked', 'touch made', 'ls docs', 'git push'].map((match) => ({ match })),
    { tool: 'Write', match: '**' },
    { tool: 'Read', match: '**' },
    { tool: 'mcp__own__echo' },
    { tool: 'mcp__given__echo' },
    { decision: 'deny', match: 'git push *', id: 'no-push', note: 'releases are made by CI' },
    { decision: 'deny', tool: 'Write', match: 'secrets/**' },
    { decision: 'ask', match: 'ls docs' },
  );
  writeFileSync(join(h.home, 'echo.mjs'), ECHO);
  writeFileSync(join(h.home, 'outside.txt'), 'x');
  mkdirSync(join(h.project, 'docs'));
  const own = { type: 'stdio', command: process.execPath, args: [join(h.home, 'echo.mjs')] };
  writeFileSync(join(h.configDir, '.claude.json'), JSON.stringify({ mcpServers: { own } }));
}

const bash = (command: string, more: object = {}) => tool('Bash', { command, description: 'x', ...more });

/** Has Claude make the calls one after the other, denies whatever is asked, and returns who decided on each. */
async function decided(
  h: Harness,
  prompt: string,
  options: object,
  ...calls: ReturnType<typeof tool>[]
): Promise<Json> {
  h.model.on(prompt).reply(...calls, text('done'));
  const sessionId = await start(h, { prompt, ...options });
  for (;;) {
    const state = await check(h, { action: 'wait', sessionId });
    if (state.status === 'idle') {
      const events = await pollAll(h, sessionId, { responseMode: 'full' });
      const outcomes = events.filter(({ type }) => type === 'permission_result').map(({ data }) => data);
      return { sessionId, outcomes, result: state.result };
    }
    for (const { requestId } of state.actions ?? []) await respond(h, sessionId, requestId, { decision: 'deny' });
  }
}

const shared = shareHarness({
  env: RULES,
  git: true,
  settings: { permissions: { ask: ['Bash(make asked)'] } },
  prepare,
});

test('a rule answers what it matches, and nothing that Claude Code wants a person to see', async () => {
  const h = shared();
  const write = (file: string) => tool('Write', { file_path: join(h.project, file), content: 'x' });
  const given = { type: 'stdio', command: process.execPath, args: [join(h.home, 'echo.mjs')] };
  const { sessionId, outcomes, result } = await decided(
    h,
    'make calls',
    { advanced: { mcpServers: { given } } },
    bash('make ok'),
    bash('make asked'),
    bash('touch made'),
    bash('make ok', { run_in_background: true }),
    bash('make ok', { dangerouslyDisableSandbox: true }),
    bash('make ok && make ok'),
    write('new.txt'),
    write('.vscode/settings.json'),
    write('CLAUDE.md'),
    write('.mcp.json'),
    write('.git/hooks/pre-commit'),
    tool('Read', { file_path: join(h.home, 'outside.txt') }),
    tool('mcp__own__echo', {}),
    tool('mcp__given__echo', {}),
    bash('ls docs'),
    bash('git push'),
    write('secrets/key'),
  );
  const rule = (id: string) => ({ decision: 'allow', source: 'rule', by: 'rule', rule: { id, author: 'operator' } });
  const asked = { decision: 'deny', source: 'caller' };
  expect(outcomes).toMatchObject([
    rule('rule-1'),
    ...[asked, asked, asked, asked, asked],
    rule('rule-6'),
    ...[asked, asked, asked, asked, asked],
    rule('rule-8'),
    asked,
    asked,
  ]);
  expect(readFileSync(join(h.project, 'new.txt'), 'utf8')).toBe('x');
  for (const file of ['made', 'CLAUDE.md', 'secrets/key']) expect(existsSync(join(h.project, file))).toBe(false);

  const denied = result.permissionDenials.filter(({ by }: Json) => by === 'rule');
  expect(denied).toMatchObject([
    { toolName: 'Bash', what: 'git push', rule: { id: 'no-push', author: 'operator' } },
    { toolName: 'Write', rule: { id: 'rule-11', author: 'operator' } },
  ]);
  const entries = await eventually(
    () => {
      const lines = readFileSync(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'), 'utf8')
        .trimEnd()
        .split('\n');
      const decisions = lines.map((line): Json => JSON.parse(line)).filter(({ who }) => who === 'rule');
      return decisions.length >= 5 && decisions;
    },
    { what: 'the decisions of rules are in the audit log' },
  );
  expect(entries).toMatchObject([
    {
      session: sessionId,
      kind: 'decision',
      what: 'Bash',
      outcome: 'allow',
      details: { rule: 'rule-1', author: 'operator' },
    },
    { what: 'Write', details: { by: 'rule', rule: 'rule-6' } },
    { what: 'mcp__own__echo', details: { by: 'rule', rule: 'rule-8' } },
    { what: 'Bash', outcome: 'deny', details: { by: 'rule', rule: 'no-push' } },
    { what: 'Write', outcome: 'deny', details: { by: 'rule', rule: 'rule-11' } },
  ]);
});

test('what a rule denies holds where Claude Code would not ask', async () => {
  const h = shared();
  const write = tool('Write', { file_path: join(h.project, 'secrets/key'), content: 'x' });
  const allowed = { allowedTools: ['Bash(git *)', 'Write'], permissionMode: 'acceptEdits' };
  const pushes = ['git push origin', 'git -C . -c push.default=current push'].map((command) => bash(command));
  const { outcomes, result } = await decided(h, 'push it', allowed, ...pushes, write, bash('ls docs'));
  expect(outcomes).toMatchObject([{ decision: 'deny', source: 'caller' }]);
  expect(result.permissionDenials).toMatchObject([
    { by: 'rule', what: 'git push origin' },
    { by: 'rule', what: 'git -C . -c push.default=current push', rule: { id: 'no-push' } },
    { by: 'rule' },
    { by: 'caller', what: 'ls docs' },
  ]);
  expect(existsSync(join(h.project, 'secrets/key'))).toBe(false);
});

test('an answer cannot put what a rule denies in the place of what was asked', async () => {
  const h = shared();
  h.model.on('push otherwise').reply(bash('make something'), text('done'));
  const sessionId = await start(h, { prompt: 'push otherwise' });
  const { actions } = await check(h, { action: 'wait', sessionId });
  const answer = { action: 'respond_permission', sessionId, requestId: actions[0].requestId, decision: 'allow' };
  const updatedInput = { command: 'git  push origin', description: 'x' };
  const refused = await h.fails(
    'claude_code_check',
    { ...answer, permissionOptions: { updatedInput } },
    'PERMISSION_DENIED',
  );
  expect(refused).toContain('no-push');
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
});

test('a rule answers for sub-agents too, and not once a command has left the directory', async () => {
  const h = shared();
  h.model.on('sub-agent at work').reply(bash('make ok'), text('sub-agent done'));
  // In the background, its end would be a turn of its own on a slow machine.
  const agent = tool('Agent', {
    ...{ description: 'x', prompt: 'sub-agent at work', subagent_type: 'general-purpose' },
    run_in_background: false,
  });
  const { outcomes } = await decided(
    h,
    'delegate it',
    {},
    agent,
    bash('cd docs'),
    bash('make ok'),
    bash('cd ..'),
    bash('make ok'),
  );
  expect(outcomes.map(({ source }: Json) => source).sort()).toEqual(['caller', 'rule', 'rule']);
});

test.each([
  [
    'readable by others',
    (h: Harness) => writeFileSync(join(h.home, 'rules.json'), '{"rules":[]}', { mode: 0o644 }),
    'chmod 600',
  ],
  ['missing', () => undefined, 'does not exist'],
  ['not JSON', (h: Harness) => writeFileSync(join(h.home, 'rules.json'), 'x', { mode: 0o600 }), 'not a file of rules'],
  ['of rules on plans', (h: Harness) => writeRules(h, { decision: 'deny', tool: 'ExitPlanMode' }), 'put to a person'],
  [
    'of rules with a match in the name',
    (h: Harness) => writeRules(h, { decision: 'deny', tool: 'Bash(rm *)' }),
    'rule 1',
  ],
  ['of rules that are too wide', (h: Harness) => writeRules(h, { match: 'npm *' }), 'rule 1'],
])('the server does not start with a file that is %s', async (_what, make, words) => {
  const h = await startHarness({
    connect: false,
    env: RULES,
    prepare: make,
  });
  expect(await h.server.exited).toMatchObject({ code: expect.any(Number) });
  expect(h.server.stderr()).toContain('CLAUDE_CODE_MCP_RULES');
  expect(h.server.stderr()).toContain(words);
});

test('no session works where the file of rules is', async () => {
  const h = shared();
  const refused = await h.fails('claude_code', { prompt: 'x', cwd: h.home }, 'PERMISSION_DENIED');
  expect(refused).toContain('keeps its own files there');
});

test('a rule for a repository holds in its worktrees, and does not lead from there into the checkout', async () => {
  const h = shared();
  const { sessionId, outcomes } = await decided(
    h,
    'work in a worktree',
    { advanced: { workspace: { type: 'worktree' } } },
    bash('make ok'),
    tool('Write', { file_path: join(h.project, 'from-worktree.txt'), content: 'x' }),
  );
  expect(outcomes).toMatchObject([{ source: 'rule' }, { source: 'caller', decision: 'deny' }]);
  await h.ok('claude_code_session', { action: 'discard', sessionId });
});

test('plans and questions are put to a person, whatever rules there are', async () => {
  const h = shared();
  const { outcomes } = await decided(
    h,
    'plan it',
    { permissionMode: 'plan', allowedTools: ['AskUserQuestion'] },
    asks(COLOUR),
    tool('ExitPlanMode', {}),
  );
  expect(outcomes).toMatchObject([
    { toolName: 'AskUserQuestion', source: 'caller' },
    { toolName: 'ExitPlanMode', source: 'caller' },
  ]);
});

test('file tools do not write the file of rules, whatever was allowed in advance and whatever leads there', async () => {
  const h = shared();
  const file = join(h.home, 'rules.json');
  symlinkSync(file, join(h.project, 'link.json'));
  symlinkSync(h.home, join(h.project, 'link'));
  const before = readFileSync(file, 'utf8');
  const allowed = {
    allowedTools: ['Read', 'Write', 'Edit', `Edit(/${file})`, `Edit(/${h.home}/**)`],
    permissionMode: 'acceptEdits',
  };
  const attempts = [file, join(h.project, 'link.json'), join(h.project, 'link', 'rules.json')];
  const { result } = await decided(
    h,
    'change the rules',
    allowed,
    tool('Edit', { file_path: file, old_string: '"make ok"', new_string: '"make anything"' }),
    ...attempts.flatMap((file_path) => [
      tool('Read', { file_path }),
      tool('Write', { file_path, content: '{"rules":[]}' }),
    ]),
  );
  expect(result.permissionDenials).toHaveLength(4);
  expect(readFileSync(file, 'utf8')).toBe(before);
});

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { reply, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { ToolCall, Toolset } from '../harness/toolsets.ts';
import { auditedDecisions } from './forms-support.ts';
import { verifies } from './requirements.ts';
import { check, pollAll, respond, start, turn } from './steps.ts';

const mkdir = (name: string) => tool('Bash', { command: `mkdir -p ${name}`, description: `make ${name}` });

const firstDecision = (h: Harness): Promise<object> =>
  eventually(() => auditedDecisions(h)[0], { what: 'a decision is in the audit log' });

const SHORT_TIMEOUT = { env: { CLAUDE_CODE_MCP_PERMISSION_TIMEOUT_MS: '800' } };
const ONE_MINUTE = { env: { CLAUDE_CODE_MCP_PERMISSION_TIMEOUT_MS: '60000' } };

const touch = (file: string) => tool('Bash', { command: `touch ${file}`, description: `make ${file}` });

verifies(['request.permission', 'wait.until-request'], async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  const script = h.model.on('make a file').reply(touch('made.txt'), text('made it'));
  const before = Date.now();
  const sessionId = await h.converse('make a file');

  const waiting = await h.watch(sessionId);
  expect(waiting).toMatchObject({ status: 'waiting', answer: undefined });
  expect(waiting.requests).toEqual([
    {
      id: expect.any(String),
      type: 'permission',
      toolName: 'Bash',
      input: expect.objectContaining({ command: 'touch made.txt' }),
      shown: variant.toolset === 'compact' ? 'Claude asks to use Bash' : 'Bash: touch made.txt',
      expiresAt: expect.any(String),
    },
  ]);
  const [request] = waiting.requests;
  const expiresAt = Date.parse(request!.expiresAt!);
  expect(expiresAt).toBeGreaterThanOrEqual(before + 60_000);
  expect(expiresAt).toBeLessThanOrEqual(Date.now() + 60_000);
  expect(existsSync(join(h.project, 'made.txt'))).toBe(false);

  expect(await h.allow(sessionId, { requestId: request!.id })).toMatchObject({ sessionId, status: 'running' });
  expect(await h.watch(sessionId)).toMatchObject({ status: 'rest', answer: 'made it', requests: [] });
  expect(existsSync(join(h.project, 'made.txt'))).toBe(true);
  expect(h.model.requestsFor(script)[1]?.toolResults[0]).toMatchObject({ isError: false });
});

verifies(['check.poll-interval', 'request.events'], async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  h.model.on('make a file').reply(touch('made.txt'), text('made it'));
  const { sessionId, from, state: waiting } = await turn(h, 'make a file');
  expect(waiting).toMatchObject({ status: 'waiting_permission', pollInterval: 1000 });
  const inFull = await check(h, { action: 'poll', sessionId, responseMode: 'full' });
  const [action] = inFull.actions;
  expect(action).toMatchObject({
    ...waiting.actions[0],
    alwaysAllows: 'Bash(touch made.txt) (this session only)',
    expiresInMs: expect.any(Number),
    summary: 'Bash: touch made.txt',
  });
  expect(action).toMatchObject({ toolUseID: expect.any(String), suggestions: expect.any(Array) });
  expect(Date.parse(action.expiresAt) - Date.parse(action.createdAt)).toBe(60_000);

  const answered = await respond(h, sessionId, action.requestId, { decision: 'allow' });
  expect(answered).toMatchObject({ sessionId, status: expect.any(String), nextCursor: expect.any(Number) });
  expect(answered.actions).toBeUndefined();
  const done = await check(h, { action: 'wait', sessionId });
  expect(done).toMatchObject({ status: 'idle', result: { result: 'made it', isError: false } });
  expect(done.pollInterval).toBeUndefined();

  const events = await pollAll(h, sessionId, {}, from);
  const asked = events.filter(({ type }) => type === 'permission_request');
  const outcomes = events.filter(({ type }) => type === 'permission_result');
  expect(asked).toMatchObject([{ data: { requestId: action.requestId } }]);
  expect(outcomes).toMatchObject([{ data: { requestId: action.requestId, decision: 'allow', source: 'caller' } }]);
});

verifies(['request.deny', 'request.once', 'request.deny-default', 'request.updated-input'], async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  const denied = h.model.on('make a file').reply(touch('denied.txt'), text('all right'));
  const sessionId = await h.converse('make a file');
  const { id } = await h.nextRequest(sessionId);
  const since = Date.now();
  await h.deny(sessionId, { requestId: id, message: 'use another name' });
  for (const answered of [id, 'no-such-request']) {
    await h.fails(...h.dialect.allow(sessionId, answered), 'PERMISSION_REQUEST_NOT_FOUND');
  }
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'all right' });
  expect(existsSync(join(h.project, 'denied.txt'))).toBe(false);
  expect(h.model.requestsFor(denied)[1]?.toolResults.at(-1)).toMatchObject({
    isError: true,
    text: expect.stringContaining('use another name'),
  });

  const deniedAgain = h.model.on('now another').reply(touch('another.txt'), text('all right'));
  await h.say(sessionId, 'now another');
  await h.deny(sessionId);
  await h.finish(sessionId);
  expect(h.model.requestsFor(deniedAgain)[1]?.toolResults.at(-1)?.text).toContain('Permission denied by caller');

  h.model.on('as you like').reply(touch('asked.txt'), text('done'));
  await h.say(sessionId, 'as you like');
  await h.allow(sessionId, { updatedInput: { command: 'touch other.txt' } });
  await h.finish(sessionId);
  expect(existsSync(join(h.project, 'asked.txt'))).toBe(false);
  expect(existsSync(join(h.project, 'other.txt'))).toBe(true);
  await eventually(() => auditedDecisions(h, since).length >= 3, { what: 'the decisions are audited' });
  const decisions = auditedDecisions(h, since).map(({ who, outcome }) => `${who} ${outcome}`);
  expect(decisions).toEqual(['caller deny', 'caller deny', 'caller allow']);
});

verifies('request.deny-interrupt', async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  const script = h.model.on('make a file').reply(touch('stopped.txt'));
  h.model.on('what now').reply(text('nothing'));
  const sessionId = await h.converse('make a file');
  await h.deny(sessionId, { interrupt: true, message: 'stop it' });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
  expect(h.model.requestsFor(script)).toHaveLength(1);
  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'what now', waitMs: 40_000 });
  expect(next).toMatchObject({ status: 'idle', result: { result: 'nothing', isError: false } });
});

verifies(['request.always-allow', 'request.disallowed-input'], async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  const rule = { toolName: 'Bash', ruleContent: 'touch *' };
  h.model.on('two files').reply(touch('one.txt'), touch('two.txt'), text('both'));
  h.model.on('one more').reply(touch('three.txt'), text('three'));
  const sessionId = await start(h, { prompt: 'two files', disallowedTools: ['Bash(rm *)'] });
  const { requestId, suggestions } = await h.waitForRequest(sessionId);
  const offered = suggestions.filter(({ type }: { type: string }) => type === 'addRules');
  expect(offered).toMatchObject([{ behavior: 'allow', rules: [{ toolName: 'Bash' }] }]);
  const always = [{ type: 'addRules', behavior: 'allow', destination: 'session', rules: [rule] }];
  await h.allow(sessionId, { requestId, updatedPermissions: always });
  expect(await check(h, { action: 'wait', sessionId })).toMatchObject({ status: 'idle', result: { result: 'both' } });
  const more = await h.ok('claude_code_reply', { sessionId, prompt: 'one more', waitMs: 40_000 });
  expect(more).toMatchObject({ status: 'idle', result: { result: 'three' } });
  expect(existsSync(join(h.project, 'three.txt'))).toBe(true);

  // What is disallowed is neither asked about nor allowed by an answer.
  const copy = tool('Bash', { command: 'cp three.txt y.txt' });
  const script = h.model.on('remove it').reply(tool('Bash', { command: 'rm -f x.txt' }), copy, text('well'));
  await h.say(sessionId, 'remove it');
  const { id, input } = await h.nextRequest(sessionId);
  expect(input.command).toBe('cp three.txt y.txt');
  expect(h.model.requestsFor(script)[1]?.toolResults[0]?.isError).toBe(true);
  for (const command of ['rm -rf y.txt', 'true && rm y.txt', 'true; rm y.txt', 'true | rm y.txt', 'A=1 rm y.txt']) {
    await h.fails(...h.dialect.allow(sessionId, id, { updatedInput: { command } }), 'PERMISSION_DENIED');
  }
  await h.allow(sessionId, { requestId: id });
  await h.finish(sessionId);

  // With the suggestions as they came.
  h.model.on('directories').reply(mkdir('one'), mkdir('one'), text('both again'));
  await h.say(sessionId, 'directories');
  const asked = await h.waitForRequest(sessionId);
  await h.allow(sessionId, { requestId: asked.requestId, updatedPermissions: asked.suggestions });
  expect(await check(h, { action: 'wait', sessionId })).toMatchObject({ result: { result: 'both again' } });
});

async function expectTimeOut(h: Harness): Promise<string> {
  const script = h.model.on('make a file').reply(touch('made.txt'), text('nobody there'));
  const sessionId = await h.begin('make a file');
  const { id } = await h.nextRequest(sessionId);
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'nobody there' });
  const told = h.model.requestsFor(script)[1]?.toolResults[0]?.text;
  expect(told).toMatch(/nobody answered/i);
  expect(told).toMatch(/not refused/i);
  await h.fails(...h.dialect.allow(sessionId, id), 'PERMISSION_REQUEST_NOT_FOUND');
  expect(await firstDecision(h)).toEqual({ who: 'timeout', what: 'Bash', outcome: 'deny' });
  return sessionId;
}

verifies(['request.time-out', 'request.audited', 'request.never-expires', 'check.result-fields'], async (variant) => {
  const h = await variant.start(SHORT_TIMEOUT);
  h.model.on('keep asking').reply(touch('kept.txt'), text('done'));
  const sessionId = await start(h, { prompt: 'keep asking', permissionRequestTimeoutMs: 0 });
  expect(await h.waitForRequest(sessionId)).not.toHaveProperty('expiresAt');
  // A second session, with the server's own timeout, shows that the request would have expired.
  const expired = await check(h, { action: 'wait', sessionId: await expectTimeOut(h) });
  expect(expired.result).toMatchObject({ result: 'nobody there', permissionDenials: [{ toolName: 'Bash' }] });
  await h.allow(sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
});

verifies('request.parallel', async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  const files = ['first', 'second', 'third'].map((name) => join(h.home, `parallel-${name}.txt`));
  for (const file of files) writeFileSync(file, `in ${file}`);
  const together = files.reduce((all, file) => all.tool('Read', { file_path: file }), reply());
  const script = h.model.on('all at once').reply(together, text('all three'));
  const sessionId = await h.converse('all at once');
  const { requests } = await h.until(sessionId, (state) => state.requests.length === files.length, {
    what: 'all requests are open',
  });
  for (const { id, input } of requests.toReversed())
    await (input.file_path === files[1] ? h.deny(sessionId, { requestId: id }) : h.allow(sessionId, { requestId: id }));
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'all three' });
  const results = h.model.requestsFor(script)[1]?.toolResults ?? [];
  const wasRead = (file: string): boolean => results.some((result) => result.text.includes(`in ${file}`));
  expect(files.map(wasRead)).toEqual([true, false, true]);
  expect(results.filter(({ isError }) => isError)).toHaveLength(1);
});

verifies(['request.sub-agents', 'request.agent-id'], async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  const agent = (prompt: string) => ({ description: prompt, prompt, subagent_type: 'general-purpose' });
  h.model
    .on('delegate both')
    .reply(reply().tool('Agent', agent('first errand')).tool('Agent', agent('second errand')))
    .always(text('they work'));
  h.model.on(/^first errand/).reply(touch('first.txt'), text('first done'));
  h.model.on(/^second errand/).reply(touch('second.txt'), text('second done'));
  const sessionId = await h.converse('delegate both');
  const { actions } = await h.waitFor(sessionId, ({ actions }) => actions?.length === 2, {
    what: 'both sub-agents have a request',
  });
  const agents: unknown[] = actions.map(({ agentID }: { agentID: unknown }) => agentID);
  expect(agents).toEqual([expect.any(String), expect.any(String)]);
  expect(new Set(agents).size).toBe(2);
  const { requests } = await h.look(sessionId);
  const first = requests.find(({ input }) => input.command === 'touch first.txt');
  const second = requests.find(({ input }) => input.command === 'touch second.txt');
  await h.allow(sessionId, { requestId: first!.id });
  await h.deny(sessionId, { requestId: second!.id });
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest' });
  expect(existsSync(join(h.project, 'first.txt'))).toBe(true);
  expect(existsSync(join(h.project, 'second.txt'))).toBe(false);
});

/** Answers that lack a parameter or have one that does not apply. */
const BAD_ANSWERS: Readonly<Record<Toolset, (sessionId: string, id: string) => ToolCall[]>> = {
  compact: (sessionId, requestId) =>
    [
      { sessionId, decision: 'allow' },
      { sessionId, requestId },
      { requestId, decision: 'allow' },
      { sessionId, requestId, decision: 'perhaps' },
      { sessionId, requestId, decision: 'allow', interrupt: true },
      { sessionId, requestId, decision: 'allow', denyMessage: 'no' },
      { sessionId, requestId, decision: 'deny', updatedInput: { command: 'true' } },
      { sessionId, requestId, decision: 'allow', answers: ['yes'] },
    ].map((args) => ['claude_code_check', { action: 'respond_permission', ...args }]),
  explicit: (sessionId, inputId) =>
    [
      { sessionId, decision: 'allow' },
      { sessionId, inputId },
      { inputId, decision: 'allow' },
      { sessionId, inputId, decision: 'perhaps' },
      { sessionId, inputId, decision: 'deny', updatedInput: { command: 'true' } },
      { sessionId, inputId, decision: 'allow', answers: ['yes'] },
    ].map((args) => ['claude_respond', args]),
};

verifies('request.needs-parameters', async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  h.model.on('make a file').reply(touch('made.txt'), text('done'));
  const sessionId = await h.converse('make a file');
  const { id } = await h.nextRequest(sessionId);
  for (const call of BAD_ANSWERS[variant.toolset](sessionId, id)) await h.fails(...call, 'INVALID_ARGUMENT');
  await h.allow(sessionId, { requestId: id });
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'done' });
});

verifies(['request.shown-whole', 'request.shortened-input'], async (variant) => {
  const h = await variant.share(ONE_MINUTE);
  const input = (state: Json): Json => h.dialect.openRequests(state)[0];
  const inputOf = (request: Json): Json => request.input ?? request.toolInput;
  const command = `: ${'x'.repeat(12_000)}; touch tail.txt`;
  const content = Array.from({ length: 6_000 }, (_, line) => `line ${String(line)}`).join('\n');
  h.model
    .on('a long way')
    .reply(tool('Bash', { command }), tool('Write', { file_path: join(h.project, 'long.txt'), content }), text('done'));
  const sessionId = await h.converse('a long way');

  const bash = await h.waitForRequest(sessionId);
  expect(inputOf(bash)).toMatchObject({ command });
  expect(bash).not.toHaveProperty('inputTruncated');
  await h.allow(sessionId);

  const shortened = input(await h.waitFor(sessionId, (state) => input(state)?.toolName === 'Write'));
  expect(shortened).toMatchObject({ inputTruncated: true });
  expect(shortened.inputChars).toBeGreaterThanOrEqual(content.length);
  const shown = inputOf(shortened);
  expect(shown.content.length).toBeLessThan(content.length);
  const id = h.dialect.requestView(shortened).id;
  const whole = await (variant.toolset === 'compact'
    ? h.ok('claude_code_check', { action: 'wait', sessionId, responseMode: 'full' })
    : h.ok('claude_get_status', { sessionId, inputId: id }));
  expect(inputOf(input(whole))).toMatchObject({ content });
  expect(input(whole)).not.toHaveProperty('inputTruncated');

  const elsewhere = { ...shown, file_path: join(h.project, 'other.txt') };
  const message = await h.fails(...h.dialect.allow(sessionId, id, { updatedInput: elsewhere }), 'INVALID_ARGUMENT');
  expect(message).toContain('truncation mark');
  await h.allow(sessionId, { requestId: id, updatedInput: shown });
  expect(await h.finish(sessionId)).toMatchObject({ answer: 'done' });
  expect(readFileSync(join(h.project, 'long.txt'), 'utf8')).toBe(content);
});

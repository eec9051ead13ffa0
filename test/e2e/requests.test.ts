import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { reply, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { verifies } from './requirements.ts';
import { check, pollAll, respond, start } from './steps.ts';

const touch = (file: string) => tool('Bash', { command: `touch ${file}`, description: `make ${file}` });

verifies(['request.permission', 'wait.until-request', 'check.poll-interval', 'request.events'], async (variant) => {
  const h = await variant.start();
  const script = h.model.on('make a file').reply(touch('made.txt'), text('made it'));
  const sessionId = await start(h, { prompt: 'make a file', permissionRequestTimeoutMs: 60_000 });

  const waiting = await check(h, { action: 'wait', sessionId });
  expect(waiting).toMatchObject({ status: 'waiting_permission', pollInterval: 1000 });
  const [action] = waiting.actions;
  expect(action).toMatchObject({
    type: 'permission',
    requestId: expect.any(String),
    toolName: 'Bash',
    input: { command: 'touch made.txt' },
    summary: 'Bash: touch made.txt',
    toolUseID: expect.any(String),
    suggestions: expect.any(Array),
  });
  expect(Date.parse(action.expiresAt) - Date.parse(action.createdAt)).toBe(60_000);
  expect(existsSync(join(h.project, 'made.txt'))).toBe(false);

  const answered = await respond(h, sessionId, action.requestId, { decision: 'allow' });
  expect(answered).toMatchObject({ sessionId, status: expect.any(String), nextCursor: expect.any(Number) });
  expect(answered.actions).toBeUndefined();
  const done = await check(h, { action: 'wait', sessionId });
  expect(done).toMatchObject({ status: 'idle', result: { result: 'made it', isError: false } });
  expect(done.pollInterval).toBeUndefined();
  expect(existsSync(join(h.project, 'made.txt'))).toBe(true);
  expect(h.model.requestsFor(script)[1]?.toolResults[0]).toMatchObject({ isError: false });

  const events = await pollAll(h, sessionId);
  const asked = events.filter(({ type }) => type === 'permission_request');
  const outcomes = events.filter(({ type }) => type === 'permission_result');
  expect(asked).toMatchObject([{ data: { requestId: action.requestId } }]);
  expect(outcomes).toMatchObject([{ data: { requestId: action.requestId, decision: 'allow', source: 'caller' } }]);
});

verifies(['request.deny', 'request.once'], async (variant) => {
  const h = await variant.start();
  const script = h.model.on('make a file').reply(touch('made.txt'), text('all right'));
  const sessionId = await start(h, { prompt: 'make a file' });
  const { requestId } = await h.waitForRequest(sessionId);
  await respond(h, sessionId, requestId, { decision: 'deny', denyMessage: 'use another name' });
  await h.fails(
    'claude_code_check',
    { action: 'respond_permission', sessionId, requestId, decision: 'allow' },
    'PERMISSION_REQUEST_NOT_FOUND',
  );
  await h.fails(
    'claude_code_check',
    { action: 'respond_permission', sessionId, requestId: 'no-such-request', decision: 'allow' },
    'PERMISSION_REQUEST_NOT_FOUND',
  );
  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'idle', result: { permissionDenials: [{ toolName: 'Bash' }] } });
  expect(existsSync(join(h.project, 'made.txt'))).toBe(false);
  expect(h.model.requestsFor(script)[1]?.toolResults[0]).toMatchObject({
    isError: true,
    text: expect.stringContaining('use another name'),
  });
});

verifies('request.deny-default', async (variant) => {
  const h = await variant.start();
  const script = h.model.on('make a file').reply(touch('made.txt'), text('all right'));
  const sessionId = await start(h, { prompt: 'make a file' });
  await h.deny(sessionId);
  await h.waitUntilRest(sessionId);
  expect(h.model.requestsFor(script)[1]?.toolResults[0]?.text).toContain('Permission denied by caller');
});

verifies('request.deny-interrupt', async (variant) => {
  const h = await variant.start();
  const script = h.model.on('make a file').reply(touch('made.txt'));
  h.model.on('what now').reply(text('nothing'));
  const sessionId = await start(h, { prompt: 'make a file' });
  await h.deny(sessionId, { interrupt: true, message: 'stop it' });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
  expect(h.model.requestsFor(script)).toHaveLength(1);
  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'what now', waitMs: 40_000 });
  expect(next).toMatchObject({ status: 'idle', result: { result: 'nothing', isError: false } });
});

verifies('request.updated-input', async (variant) => {
  const h = await variant.start();
  h.model.on('make a file').reply(touch('asked.txt'), text('done'));
  const sessionId = await start(h, { prompt: 'make a file' });
  await h.allow(sessionId, { updatedInput: { command: 'touch other.txt' } });
  await h.waitUntilRest(sessionId);
  expect(existsSync(join(h.project, 'asked.txt'))).toBe(false);
  expect(existsSync(join(h.project, 'other.txt'))).toBe(true);
});

verifies('request.always-allow', async (variant) => {
  const h = await variant.start();
  const rule = { toolName: 'Bash', ruleContent: 'touch *' };
  h.model.on('two files').reply(touch('one.txt'), touch('two.txt'), text('both'));
  h.model.on('one more').reply(touch('three.txt'), text('three'));
  const sessionId = await start(h, { prompt: 'two files' });
  const { requestId, suggestions } = await h.waitForRequest(sessionId);
  const offered = suggestions.filter(({ type }: { type: string }) => type === 'addRules');
  expect(offered).toMatchObject([{ behavior: 'allow', rules: [{ toolName: 'Bash' }] }]);
  const always = [{ type: 'addRules', behavior: 'allow', destination: 'session', rules: [rule] }];
  await h.allow(sessionId, { requestId, updatedPermissions: always });
  expect(await check(h, { action: 'wait', sessionId })).toMatchObject({ status: 'idle', result: { result: 'both' } });
  const more = await h.ok('claude_code_reply', { sessionId, prompt: 'one more', waitMs: 40_000 });
  expect(more).toMatchObject({ status: 'idle', result: { result: 'three' } });
  expect(existsSync(join(h.project, 'three.txt'))).toBe(true);
});

verifies('request.always-allow', { when: 'the suggestion as it came' }, async (variant) => {
  const h = await variant.start();
  h.model.on('twice').reply(touch('a.txt'), touch('a.txt'), text('both'));
  const sessionId = await start(h, { prompt: 'twice' });
  const { requestId, suggestions } = await h.waitForRequest(sessionId);
  await h.allow(sessionId, { requestId, updatedPermissions: suggestions });
  expect(await check(h, { action: 'wait', sessionId })).toMatchObject({ status: 'idle', result: { result: 'both' } });
});

verifies('request.disallowed-input', async (variant) => {
  const h = await variant.start();
  const script = h.model
    .on('remove it')
    .reply(tool('Bash', { command: 'rm -f x.txt' }), tool('Bash', { command: 'touch y.txt' }), text('well'));
  const sessionId = await start(h, { prompt: 'remove it', disallowedTools: ['Bash(rm *)'] });
  const action = await h.waitForRequest(sessionId);
  expect(action.input.command).toBe('touch y.txt');
  expect(h.model.requestsFor(script)[1]?.toolResults[0]?.isError).toBe(true);
  for (const command of ['rm -rf y.txt', 'true && rm y.txt', 'true; rm y.txt', 'true | rm y.txt', 'A=1 rm y.txt']) {
    const respond = { action: 'respond_permission', sessionId, requestId: action.requestId, decision: 'allow' };
    const permissionOptions = { updatedInput: { command } };
    await h.fails('claude_code_check', { ...respond, permissionOptions }, 'PERMISSION_DENIED');
  }
  await h.allow(sessionId, { requestId: action.requestId });
  await h.waitUntilRest(sessionId);
});

verifies('request.time-out', async (variant) => {
  const h = await variant.start();
  const script = h.model.on('make a file').reply(touch('made.txt'), text('nobody there'));
  const sessionId = await start(h, { prompt: 'make a file', permissionRequestTimeoutMs: 300 });
  const { requestId } = await h.waitForRequest(sessionId);
  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'idle', result: { result: 'nobody there' } });
  const told = h.model.requestsFor(script)[1]?.toolResults[0]?.text;
  expect(told).toMatch(/nobody answered/i);
  expect(told).toMatch(/not refused/i);
  await h.fails(
    'claude_code_check',
    { action: 'respond_permission', sessionId, requestId, decision: 'allow' },
    'PERMISSION_REQUEST_NOT_FOUND',
  );
  const outcomes = (await pollAll(h, sessionId)).filter(({ type }) => type === 'permission_result');
  expect(outcomes).toMatchObject([{ data: { decision: 'deny', source: 'timeout' } }]);
});

verifies('request.never-expires', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_PERMISSION_TIMEOUT_MS: '200' } });
  h.model.on('make a file').reply(touch('made.txt'), text('done'));
  const sessionId = await start(h, { prompt: 'make a file', permissionRequestTimeoutMs: 0 });
  expect(await h.waitForRequest(sessionId)).not.toHaveProperty('expiresAt');
  // A second session with the setting of the server shows that the time would have been up.
  h.model.on('another file').reply(touch('other.txt'), text('not done'));
  await h.waitUntilRest(await start(h, { prompt: 'another file' }));
  await h.allow(sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
});

verifies('request.parallel', async (variant) => {
  const h = await variant.start();
  const script = h.model
    .on('two at once')
    .reply(
      reply()
        .tool('Bash', { command: 'touch one.txt' })
        .tool('Bash', { command: 'touch two.txt' })
        .tool('Bash', { command: 'touch three.txt' }),
      text('all three'),
    );
  const sessionId = await start(h, { prompt: 'two at once' });
  const answered = new Set<string>();
  // Claude Code may ask one after the other or all at once: whichever it does, each is answered by its id, last first.
  for (let count = 0; count < 3; count++) {
    const { actions } = await h.waitFor(sessionId, ({ actions }) => actions?.length > 0, { what: 'a request' });
    const action = actions.at(-1);
    expect(answered.has(action.requestId)).toBe(false);
    answered.add(action.requestId);
    const decision = action.input.command === 'touch two.txt' ? 'deny' : 'allow';
    await respond(h, sessionId, action.requestId, { decision });
  }
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'all three' } });
  const results = h.model.requestsFor(script)[1]?.toolResults;
  expect(results?.map(({ isError }) => isError)).toEqual([false, true, false]);
  expect(['one.txt', 'two.txt', 'three.txt'].map((file) => existsSync(join(h.project, file)))).toEqual([
    true,
    false,
    true,
  ]);
});

verifies('request.sub-agents', async (variant) => {
  const h = await variant.start();
  const agent = (prompt: string) => ({ description: prompt, prompt, subagent_type: 'general-purpose' });
  h.model
    .on('delegate both')
    .reply(reply().tool('Agent', agent('first errand')).tool('Agent', agent('second errand')))
    .always(text('they work'));
  h.model.on(/^first errand/).reply(tool('Bash', { command: 'touch first.txt' }), text('first done'));
  h.model.on(/^second errand/).reply(tool('Bash', { command: 'touch second.txt' }), text('second done'));
  const sessionId = await start(h, { prompt: 'delegate both' });
  const { actions } = await h.waitFor(sessionId, ({ actions }) => actions?.length === 2, { what: 'both ask' });
  expect(new Set(actions.map(({ agentID }: { agentID: string }) => agentID)).size).toBe(2);
  expect(actions.every(({ agentID }: { agentID: unknown }) => typeof agentID === 'string')).toBe(true);
  for (const { requestId, input } of actions) {
    await respond(h, sessionId, requestId, { decision: input.command.includes('first') ? 'allow' : 'deny' });
  }
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
  expect(existsSync(join(h.project, 'first.txt'))).toBe(true);
  expect(existsSync(join(h.project, 'second.txt'))).toBe(false);
});

verifies('request.plan', async (variant) => {
  const h = await variant.start();
  const plan = '# The plan\n\n1. Make `planned.txt`.';
  const script = h.model.on('plan it').reply(
    ({ reminders }) => {
      const [file] = /\S+\/plans\/\S+\.md/.exec(reminders.join('\n')) ?? [];
      return tool('Write', { file_path: file, content: plan });
    },
    tool('ExitPlanMode', {}),
    touch('planned.txt'),
    text('as planned'),
  );
  const sessionId = await start(h, { prompt: 'plan it', permissionMode: 'plan' });
  const action = await h.waitForRequest(sessionId);
  expect(action).toMatchObject({ type: 'plan_review', toolName: 'ExitPlanMode', plan });
  const before = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(before.sessions[0].permissionMode).toBe('plan');
  await h.allow(sessionId, { requestId: action.requestId });
  // Out of plan mode the work asks as usual.
  const work = await h.waitFor(sessionId, ({ actions }) => actions?.[0]?.toolName === 'Bash', {
    what: 'the work asks',
  });
  await h.allow(sessionId, { requestId: work.actions[0].requestId });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'as planned' } });
  expect(h.model.requestsFor(script)[2]?.toolResults[0]?.isError).toBe(false);
  const after = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(after.sessions[0].permissionMode).toBe('default');
});

verifies(['request.plan-said', 'request.plan-deny'], async (variant) => {
  const h = await variant.start();
  const script = h.model
    .on('plan it')
    .reply(
      reply().text('First I make one thing.').tool('ExitPlanMode', {}),
      reply().text('First I make two things.').tool('ExitPlanMode', {}),
      text('as you like'),
    );
  const sessionId = await start(h, { prompt: 'plan it', permissionMode: 'plan' });
  const first = await h.waitForRequest(sessionId);
  expect(first).toMatchObject({ type: 'plan_review', plan: 'First I make one thing.' });
  await h.deny(sessionId, { requestId: first.requestId, message: 'make two' });
  const isSecond = ({ actions }: { actions?: { requestId: string }[] }): boolean =>
    actions?.[0] !== undefined && actions[0].requestId !== first.requestId;
  const { actions } = await h.waitFor(sessionId, isSecond, { what: 'the second plan' });
  expect(actions[0]).toMatchObject({ type: 'plan_review', plan: 'First I make two things.' });
  expect(h.model.requestsFor(script)[1]?.toolResults[0]).toMatchObject({
    isError: true,
    text: expect.stringContaining('make two'),
  });
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(sessions[0].permissionMode).toBe('plan');
  await h.allow(sessionId, { requestId: actions[0].requestId });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'as you like' } });
});

const COLOUR = {
  question: 'Which colour?',
  header: 'Colour',
  multiSelect: false,
  options: [
    { label: 'Red', description: 'warm' },
    { label: 'Blue', description: 'cold' },
  ],
};
const PARTS = {
  question: 'Which parts?',
  header: 'Parts',
  multiSelect: true,
  options: [
    { label: 'Door', description: 'to enter' },
    { label: 'Roof', description: 'to stay dry' },
    { label: 'Window', description: 'to look' },
  ],
};

verifies('request.question-map', async (variant) => {
  const h = await variant.start();
  const script = h.model.on('ask me').reply(tool('AskUserQuestion', { questions: [COLOUR] }), text('thanks'));
  const sessionId = await start(h, { prompt: 'ask me' });
  const action = await h.waitForRequest(sessionId);
  expect(action).toMatchObject({ type: 'user_question', toolName: 'AskUserQuestion', summary: 'Which colour?' });
  expect(action.questions).toMatchObject([
    { question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Blue' }] },
  ]);
  await h.allow(sessionId, { requestId: action.requestId, answers: { 'Which colour?': 'Blue' } });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'thanks' } });
  const [told] = h.model.requestsFor(script)[1]?.toolResults ?? [];
  expect(told?.text).toContain('Which colour?');
  expect(told?.text).toContain('Blue');
  expect(told?.text).not.toContain('Red');
});

verifies(['request.question-list', 'request.question-needs-answer'], async (variant) => {
  const h = await variant.start();
  const script = h.model.on('ask me').reply(tool('AskUserQuestion', { questions: [COLOUR, PARTS] }), text('thanks'));
  const sessionId = await start(h, { prompt: 'ask me' });
  const { requestId } = await h.waitForRequest(sessionId);
  const allow = { action: 'respond_permission', sessionId, requestId, decision: 'allow' };
  for (const answers of [undefined, [], ['Blue'], { 'Which colour?': 'Blue' }, { 'Which size?': 'Large' }]) {
    const message = await h.fails('claude_code_check', { ...allow, ...(answers && { answers }) }, 'INVALID_ARGUMENT');
    expect(message).toMatch(/question|answer/i);
  }
  await h.ok('claude_code_check', { ...allow, answers: ['a light green', ['Door', 'Window']] });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'thanks' } });
  const [told] = h.model.requestsFor(script)[1]?.toolResults ?? [];
  expect(told?.text).toMatch(/Which colour\?.*a light green/s);
  expect(told?.text).toMatch(/Which parts\?.*Door, Window/s);
});

verifies('request.question-not-approved', async (variant) => {
  const h = await variant.start();
  h.model.on('ask me').reply(tool('AskUserQuestion', { questions: [COLOUR] }), text('thanks'));
  const sessionId = await start(h, { prompt: 'ask me', allowedTools: ['AskUserQuestion'] });
  expect(await h.waitForRequest(sessionId)).toMatchObject({ type: 'user_question' });
  await h.allow(sessionId, { answers: ['Red'] });
  await h.waitUntilRest(sessionId);
});

verifies('request.needs-parameters', async (variant) => {
  const h = await variant.start();
  h.model.on('make a file').reply(touch('made.txt'), text('done'));
  const sessionId = await start(h, { prompt: 'make a file' });
  const { requestId } = await h.waitForRequest(sessionId);
  const bad = [
    { sessionId, decision: 'allow' },
    { sessionId, requestId },
    { requestId, decision: 'allow' },
    { sessionId, requestId, decision: 'perhaps' },
    { sessionId, requestId, decision: 'allow', interrupt: true },
    { sessionId, requestId, decision: 'deny', updatedInput: { command: 'true' } },
    { sessionId, requestId, decision: 'allow', answers: ['yes'] },
  ];
  for (const args of bad) {
    await h.fails('claude_code_check', { action: 'respond_permission', ...args }, 'INVALID_ARGUMENT');
  }
  await h.allow(sessionId, { requestId });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
});

verifies('request.events', { when: 'in the audit log' }, async (variant) => {
  const log = (home: string): string => join(home, 'audit.jsonl');
  const h = await variant.start();
  await h.restartServer({ env: { CLAUDE_CODE_MCP_AUDIT_LOG: log(h.home) } });
  h.model.on('make a file').reply(touch('made.txt'), text('done'));
  const sessionId = await start(h, { prompt: 'make a file' });
  await h.deny(sessionId);
  await h.waitUntilRest(sessionId);
  const decision = await eventually(
    () =>
      readFileSync(log(h.home), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
        .find(({ kind }) => kind === 'decision'),
    { what: 'the decision is in the audit log' },
  );
  expect(decision).toMatchObject({ session: sessionId, who: 'caller', what: 'Bash', outcome: 'deny' });
});

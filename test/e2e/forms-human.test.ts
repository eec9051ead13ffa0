import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { ERAS } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import {
  accept,
  allowOnce,
  auditedDecisions,
  cancel,
  outcomes,
  shareSession,
  SlowPerson,
  start,
} from './forms-support.ts';

const touch = tool('Bash', { command: 'touch made.txt', description: 'make a file' });
const env = { CLAUDE_CODE_MCP_APPROVALS: 'human' };

describe.each(ERAS)('where only a person decides, a %s client', (era) => {
  const { ask } = shareSession({ era, env });

  it('asks its user, whose word counts', async () => {
    const { h, sessionId, file, outcomes } = await ask(() => allowOnce);
    await h.waitUntilRest(sessionId);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
    expect(existsSync(file)).toBe(true);
  });

  it.each([
    ['cancelled', cancel, 'the form was closed without an answer'],
    ['filled with what does not fit', accept({ decision: 'yes' }), 'returned something other than what was asked for'],
  ])('gets a denial that says why when the form is %s', async (_, answer, why) => {
    const { h, sessionId, script, forms, outcomes } = await ask(() => answer);
    await h.waitUntilRest(sessionId);
    expect(await outcomes()).toMatchObject([
      { decision: 'deny', source: 'policy', message: expect.stringContaining(why) },
    ]);
    expect(h.model.requestsFor(script).at(-1)!.toolResults[0]!.text).toContain('No person refused it');
    expect(forms()).toHaveLength(1);
  });

  it('lets the caller neither allow nor deny, but wait for the person', async () => {
    const person = new SlowPerson();
    const { h, sessionId, outcomes } = await ask(person.form);
    const waiting = h.ok('claude_code_check', { action: 'wait', sessionId });
    const { answer } = await person.nextForm();
    const { actions, status } = await h.ok('claude_code_check', { action: 'poll', sessionId });
    expect(status).toBe('waiting_permission');
    expect(actions).toMatchObject([{ askedPerson: true }]);
    for (const decision of ['allow', 'deny']) {
      const respond = { action: 'respond_permission', sessionId, requestId: actions[0].requestId, decision };
      await h.fails('claude_code_check', respond, 'PERMISSION_DENIED');
    }
    const alsoWaiting = h.ok('claude_code_check', { action: 'wait', sessionId });
    answer(allowOnce);
    // A request that the caller cannot answer is no reason to end a wait.
    for (const wait of [waiting, alsoWaiting]) expect(await wait).toMatchObject({ status: 'idle' });
    expect(person.shown).toHaveLength(1);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });

  it('without forms gets a denial that says why', async () => {
    const h = await startHarness({ era, env });
    h.model.on('go').reply(touch, text('done'));
    const sessionId = await start(h, 'go');
    await h.waitUntilRest(sessionId);
    expect(await outcomes(h, sessionId)).toMatchObject([
      { decision: 'deny', source: 'policy', message: expect.stringContaining('cannot show a form') },
    ]);
    expect(auditedDecisions(h)).toEqual([{ who: 'policy', what: 'Bash', outcome: 'deny' }]);
  });
});

it('keeps a request of a modern client open until a call waits, or until it expires', async () => {
  const h = await startHarness({ era: 'modern', env, form: () => allowOnce });
  h.model.on('go').reply(touch, text('done'));
  const sessionId = await start(h, 'go');
  h.model.on('be quick').reply(touch, text('done'));
  const expiring = await start(h, 'be quick', { permissionRequestTimeoutMs: 300 });
  await eventually(async () => (await outcomes(h, expiring)).length, { what: 'the second has its outcome' });
  expect(await outcomes(h, expiring)).toMatchObject([{ decision: 'deny', source: 'timeout' }]);
  const poll = { action: 'poll', sessionId };
  await eventually(async () => (await h.ok('claude_code_check', poll)).actions?.length, {
    what: 'the request is open',
  });
  expect(h.forms).toEqual([]);
  expect(await outcomes(h, sessionId)).toEqual([]);
  expect(await h.ok('claude_code_check', { action: 'wait', sessionId })).toMatchObject({ status: 'idle' });
  expect(await outcomes(h, sessionId)).toMatchObject([{ decision: 'allow', source: 'human' }]);
});

describe('where only a person decides, a caller', () => {
  const agent = { description: 'helps', prompt: 'Help.' };
  const sideDoors: Record<string, unknown>[] = [
    { allowedTools: ['Bash'] },
    { permissionMode: 'acceptEdits' },
    { permissionMode: 'auto' },
    { permissionMode: 'bypassPermissions' },
    { advanced: { settings: { permissions: { allow: ['Bash'] } } } },
    { advanced: { settings: '/tmp/settings.json' } },
    { advanced: { plugins: [{ type: 'local', path: '/tmp/plugin' }] } },
    { advanced: { mcpServers: { mine: { command: 'sh' } } } },
    { advanced: { agent: 'helper' } },
    { advanced: { agents: { helper: { ...agent, tools: ['Bash'] } } } },
    { advanced: { agents: { helper: { ...agent, permissionMode: 'acceptEdits' } } } },
    { advanced: { agents: { helper: { ...agent, mcpServers: [{ mine: { command: 'sh' } }] } } } },
    { advanced: { agents: { helper: { ...agent, hooks: { PreToolUse: [] } } } } },
    { advanced: { env: { PATH: '/tmp' } } },
    { advanced: { pathToClaudeCodeExecutable: '/bin/sh' } },
    { advanced: { toolAliases: { Read: 'Bash' } } },
    { advanced: { sandbox: { enabled: false } } },
    // In the sandbox commands may not be asked about.
    { advanced: { sandbox: { enabled: true } } },
    { advanced: { sandbox: { enabled: true, autoAllowBashIfSandboxed: true } } },
    { advanced: { settingSources: [] } },
    { advanced: { settingSources: ['project'] } },
    { advanced: { skills: 'all' } },
    { advanced: { additionalDirectories: ['/tmp'] } },
    { advanced: { projectConfigRoot: '/tmp' } },
    { advanced: { debugFile: '/tmp/debug' } },
  ];

  it('finds every side door closed, at a start, on a reply in memory and from disk', async () => {
    const h = await startHarness({
      env: { ...env, CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1', CLAUDE_CODE_MCP_RESUME_SECRET: 'secret' },
    });
    for (const options of sideDoors) {
      const message = await h.fails('claude_code', { prompt: 'go', ...options }, 'PERMISSION_DENIED');
      expect(message).toMatch(/only a person may grant|ALLOW_BYPASS/);
    }
    expect(await h.ok('claude_code_session', { action: 'list' })).toMatchObject({ sessions: [] });

    h.model.on('go').reply(text('hello'));
    const { sessionId, resumeToken } = await h.ok('claude_code', { prompt: 'go', cwd: h.project });
    await h.waitUntilRest(sessionId);
    const mode = { sessionId, prompt: 'on', permissionMode: 'acceptEdits' };
    await h.fails('claude_code_reply', mode, 'PERMISSION_DENIED');
    await h.fails('claude_code_reply', { ...mode, forkSession: true }, 'PERMISSION_DENIED');
    await h.restartServer();
    for (const diskResumeConfig of sideDoors) {
      const reply = { sessionId, prompt: 'on', resumeToken, diskResumeConfig };
      await h.fails('claude_code_reply', reply, 'PERMISSION_DENIED');
    }
  });
});

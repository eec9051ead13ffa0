import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { ERAS } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import { promptLine, writeTranscript } from '../transcripts/written-transcript.ts';
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

describe.each(ERAS)('with APPROVALS=human, a %s client', (era) => {
  const { ask } = shareSession({ era, env });

  it('asks its user and follows the answer', async () => {
    const { h, sessionId, file, outcomes } = await ask(() => allowOnce);
    await h.waitUntilRest(sessionId);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
    expect(existsSync(file)).toBe(true);
  });

  it.each([
    ['cancelled', cancel, 'the form was closed without an answer'],
    [
      'filled in with an invalid value',
      accept({ decision: 'yes' }),
      'returned something other than what was asked for',
    ],
  ])('gets a denial that says why when the form is %s', async (_, answer, why) => {
    const { h, sessionId, script, forms, outcomes } = await ask(() => answer);
    await h.waitUntilRest(sessionId);
    expect(await outcomes()).toMatchObject([
      { decision: 'deny', source: 'policy', message: expect.stringContaining(why) },
    ]);
    expect(h.model.requestsFor(script).at(-1)!.toolResults[0]!.text).toContain('No person refused it');
    expect(forms()).toHaveLength(1);
  });

  it('lets the caller wait for the person, but not allow or deny', async () => {
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
    // A request that the caller cannot answer does not end a wait.
    for (const wait of [waiting, alsoWaiting]) expect(await wait).toMatchObject({ status: 'idle' });
    expect(person.shown).toHaveLength(1);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });

  it.runIf(era === 'modern')('keeps a request open until a call waits, or until it expires', async () => {
    const { h, sessionId, forms, outcomes: settled } = await ask(() => allowOnce);
    h.model.on('be quick').reply(touch, text('done'));
    const expiring = await start(h, 'be quick', { permissionRequestTimeoutMs: 300 });
    await eventually(async () => (await outcomes(h, expiring)).length, { what: 'the second request is settled' });
    expect(await outcomes(h, expiring)).toMatchObject([{ decision: 'deny', source: 'timeout' }]);
    const poll = { action: 'poll', sessionId };
    await eventually(async () => (await h.ok('claude_code_check', poll)).actions?.length, {
      what: 'the request is open',
    });
    expect(forms()).toEqual([]);
    expect(await settled()).toEqual([]);
    expect(await h.ok('claude_code_check', { action: 'wait', sessionId })).toMatchObject({ status: 'idle' });
    expect(await settled()).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });
});

describe('with APPROVALS=human, a caller', () => {
  const agent = { description: 'helps', prompt: 'Help.' };
  const waysAround: Record<string, unknown>[] = [
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
    // Sandboxed commands may run without asking.
    { advanced: { sandbox: { enabled: true } } },
    { advanced: { sandbox: { enabled: true, autoAllowBashIfSandboxed: true } } },
    { advanced: { settingSources: [] } },
    { advanced: { settingSources: ['project'] } },
    { advanced: { skills: 'all' } },
    { advanced: { additionalDirectories: ['/tmp'] } },
    { advanced: { projectConfigRoot: '/tmp' } },
    { advanced: { debugFile: '/tmp/debug' } },
  ];

  const SECRET = 'secret';
  // For a modern client without forms, see `operator-permissions`.
  const harness = shareHarness({
    era: 'legacy',
    env: { ...env, CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1', CLAUDE_CODE_MCP_RESUME_SECRET: SECRET },
  });

  it('of a client without forms gets a denial that says why', async () => {
    const h = harness();
    h.model.on('go').reply(touch, text('done'));
    const sessionId = await start(h, 'go');
    await h.waitUntilRest(sessionId);
    expect(await outcomes(h, sessionId)).toMatchObject([
      { decision: 'deny', source: 'policy', message: expect.stringContaining('cannot show a form') },
    ]);
    await eventually(() => auditedDecisions(h).length, { what: 'the decision is audited' });
    expect(auditedDecisions(h)).toEqual([{ who: 'policy', what: 'Bash', outcome: 'deny' }]);
  });

  // For a reply to a session in memory, see `operator-permissions`.
  it('cannot use options to get around the person, in a start or a resume from disk', async () => {
    const h = harness();
    for (const options of waysAround) {
      const message = await h.fails('claude_code', { prompt: 'never', ...options }, 'PERMISSION_DENIED');
      expect(message).toMatch(/only a person may grant|ALLOW_BYPASS/);
    }
    const { sessionId } = await writeTranscript(h.configDir, (id) => promptLine(id, 'hello', h.project));
    const resumeToken = createHmac('sha256', SECRET).update(sessionId).digest('hex');
    for (const diskResumeConfig of waysAround) {
      const reply = { sessionId, prompt: 'never', resumeToken, diskResumeConfig };
      expect(await h.fails('claude_code_reply', reply, 'PERMISSION_DENIED')).not.toContain('resumeToken');
    }
    const { sessions } = await h.ok('claude_code_session', { action: 'list' });
    expect(sessions.map((session: Json) => session.sessionId)).not.toContain(sessionId);
    expect(h.model.requests.filter(({ lastUserText }) => lastUserText.includes('never'))).toEqual([]);
  });
});

/** Forms as a person at either client sees and answers them. One session serves nearly all tests of a client. */

import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { ERAS } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { permissionContents, permissionForms } from './forms-permission-suite.ts';
import { planAndQuestionAnswers, planAndQuestionForms } from './forms-plan-question-suite.ts';
import { formsLeftOpen, heldForms, settledForms, withdrawnForms } from './forms-settled-suite.ts';
import { allowOnce, auditedDecisions, cancel, outcomes, shareSession, start } from './forms-support.ts';
import { sessionsOf, touch, waitingCalls } from './forms-waiting-call-suite.ts';
import { standIn } from './stand-in.ts';

describe.each(ERAS)('a %s client', (era) => {
  const session = shareSession({ era });
  describe('that shows forms', () => {
    permissionForms(session);
    if (era === 'modern') permissionContents(session);
  });
  describe('that shows plans and questions', () => {
    planAndQuestionForms(session);
    if (era === 'modern') planAndQuestionAnswers(session);
  });
  describe('with a form', () => settledForms(era, session));
  describe('while the person has the form', () => heldForms(session));
  if (era === 'legacy') describe('whose open form', () => withdrawnForms(session));
  else describe('whose waiting call', () => waitingCalls(session));
  // The last, for they take the session and the server down.
  describe('with a form left open', () => formsLeftOpen(era, session));
});

// The toolset can matter once: what a wait does is the same for both, how it is told is not.
describe('a legacy client of the explicit tools, with a bare elicitation capability', () => {
  const session = shareSession({ era: 'legacy', toolset: 'explicit', capabilities: { elicitation: {} } });

  it('asks its user when no call is in progress', async () => {
    const { h, sessionId, file, forms, auditedDecisions } = await session.ask(() => allowOnce);
    await eventually(() => existsSync(file), { what: 'the command ran, though nobody waited for it' });
    expect(forms()).toHaveLength(1);
    await eventually(() => auditedDecisions().length, { what: 'the decision is audited' });
    expect(auditedDecisions()).toEqual([{ who: 'human', what: 'Bash', outcome: 'allow' }]);
    await h.waitUntilRest(sessionId);
  });

  describe('while the person has the form', () => heldForms(session));
});

it('asks the user of a modern client through the explicit tools too', async () => {
  const h = await startHarness({ era: 'modern', toolset: 'explicit', form: () => allowOnce });
  h.model.on('go').reply(touch('made.txt'), text('done'));
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'go', workingDirectory: h.project });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', pendingInputs: [] });
  expect(h.forms).toHaveLength(1);
  await eventually(() => auditedDecisions(h).length, { what: 'the decision is audited' });
  expect(auditedDecisions(h)).toEqual([{ who: 'human', what: 'Bash', outcome: 'allow' }]);
  expect(existsSync(`${h.project}/made.txt`)).toBe(true);
});

// A legacy client could be shown one at any time.
it('shows no form where only the caller answers', async () => {
  const h = await startHarness({
    era: 'legacy',
    form: () => allowOnce,
    env: { CLAUDE_CODE_MCP_APPROVALS: 'caller' },
  });
  const sessionId = await start(h, 'go', standIn('asks'));
  await h.deny(sessionId);
  expect(h.forms).toEqual([]);
  expect(await outcomes(h, sessionId)).toMatchObject([{ decision: 'deny', source: 'caller' }]);
});

/** One leg of a call, as it goes over the wire: the client fulfils nothing by itself. */
function leg(h: Harness, params: Record<string, unknown>): Promise<Json> {
  return h.client.request({ method: 'tools/call', params }, { allowInputRequired: true, timeout: 60_000 } as never);
}

const manual = { era: 'modern', form: () => cancel, clientOptions: { inputRequired: { autoFulfill: false } } } as const;

it('the state that a call leaves with the client cannot be altered or used elsewhere, and answers only what was asked', async () => {
  const h = await startHarness(manual);
  const call = { name: 'claude_code', arguments: { prompt: 'go', waitMs: 60_000, ...standIn('asks') } };
  const asked = await leg(h, call);
  expect(asked).toMatchObject({ requestState: expect.any(String) });
  const [{ sessionId }] = await sessionsOf(h);

  // Changed.
  const [version, body, mac] = asked.requestState.split('.');
  const state = JSON.parse(Buffer.from(body, 'base64url').toString());
  const changed = Buffer.from(JSON.stringify({ ...state, p: { ...state.p, sessionId: 'another' } }));
  const forged = [version, changed.toString('base64url'), mac].join('.');
  await expect(leg(h, { ...call, requestState: forged })).rejects.toThrow('requestState');

  // Brought to another tool.
  const reply = { name: 'claude_code_reply', arguments: { sessionId, prompt: 'on' } };
  const elsewhere = await leg(h, { ...reply, requestState: asked.requestState });
  expect(elsewhere).toMatchObject({ isError: true });
  expect(elsewhere.content[0].text).toContain('INVALID_ARGUMENT');

  // An answer without the state of the call that asked.
  const [id] = Object.keys(asked.inputRequests);
  const answer = { action: 'accept', content: { decision: 'Allow once' } };
  const unasked = { name: 'claude_code_check', arguments: { action: 'wait', sessionId, waitMs: 200 } };
  await leg(h, { ...unasked, inputResponses: { [id!]: answer } });
  expect(await outcomes(h, sessionId)).toEqual([]);

  // Back without an answer, it counts as a failed form.
  const again = await leg(h, { ...call, requestState: asked.requestState });
  expect(again.structuredContent).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
  expect(await sessionsOf(h)).toHaveLength(1);
});

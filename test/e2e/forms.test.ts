/** Forms as a person sees and answers them, in either era. Nearly all tests of a client share one session. */

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
  describe('a form', () => settledForms(era, session));
  describe('while a form is open', () => heldForms(session));
  if (era === 'legacy') describe('an open form', () => withdrawnForms(session));
  else describe('a call', () => waitingCalls(session));
  // Last, because these end the session's process and the server.
  describe('a form that is still open', () => formsLeftOpen(era, session));
});

// Waits behave the same in both toolsets, but their answers differ.
describe('a legacy client of the explicit tools, with a bare elicitation capability', () => {
  const session = shareSession({ era: 'legacy', toolset: 'explicit', capabilities: { elicitation: {} } });

  it('asks its user when no call is in progress', async () => {
    const { h, sessionId, file, forms, auditedDecisions } = await session.ask(() => allowOnce);
    await eventually(() => existsSync(file), { what: 'the command ran although no call was waiting' });
    expect(forms()).toHaveLength(1);
    await eventually(() => auditedDecisions().length, { what: 'the decision is audited' });
    expect(auditedDecisions()).toEqual([{ who: 'human', what: 'Bash', outcome: 'allow' }]);
    await h.waitUntilRest(sessionId);
  });

  describe('while a form is open', () => heldForms(session));
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

// A legacy client, because it could be shown a form at any time.
it('shows no form with APPROVALS=caller', async () => {
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

/** One leg of a call as it goes over the wire: the client answers no forms by itself. */
function leg(h: Harness, params: Record<string, unknown>): Promise<Json> {
  return h.client.request({ method: 'tools/call', params }, { allowInputRequired: true, timeout: 60_000 } as never);
}

const manual = { era: 'modern', form: () => cancel, clientOptions: { inputRequired: { autoFulfill: false } } } as const;

it('requestState cannot be altered or used with another tool, and an answer without it is ignored', async () => {
  const h = await startHarness(manual);
  const call = { name: 'claude_code', arguments: { prompt: 'go', waitMs: 60_000, ...standIn('asks') } };
  const asked = await leg(h, call);
  expect(asked).toMatchObject({ requestState: expect.any(String) });
  const [{ sessionId }] = await sessionsOf(h);

  // Altered.
  const [version, body, mac] = asked.requestState.split('.');
  const state = JSON.parse(Buffer.from(body, 'base64url').toString());
  const changed = Buffer.from(JSON.stringify({ ...state, p: { ...state.p, sessionId: 'another' } }));
  const forged = [version, changed.toString('base64url'), mac].join('.');
  await expect(leg(h, { ...call, requestState: forged })).rejects.toThrow('requestState');

  // Used with another tool.
  const reply = { name: 'claude_code_reply', arguments: { sessionId, prompt: 'on' } };
  const elsewhere = await leg(h, { ...reply, requestState: asked.requestState });
  expect(elsewhere).toMatchObject({ isError: true });
  expect(elsewhere.content[0].text).toContain('INVALID_ARGUMENT');

  // An answer without it.
  const [id] = Object.keys(asked.inputRequests);
  const answer = { action: 'accept', content: { decision: 'Allow once' } };
  const statelessCall = { name: 'claude_code_check', arguments: { action: 'wait', sessionId, waitMs: 200 } };
  await leg(h, { ...statelessCall, inputResponses: { [id!]: answer } });
  expect(await outcomes(h, sessionId)).toEqual([]);

  // Without an answer, it counts as a failed form.
  const again = await leg(h, { ...call, requestState: asked.requestState });
  expect(again.structuredContent).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
  expect(await sessionsOf(h)).toHaveLength(1);
});

import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { gate, text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import type { FormAnswer } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { allowOnce, cancel, outcomes, shareSession, SlowPerson } from './forms-support.ts';

const patient = { timeout: 60_000 };

const touch = (name: string): MessageReply => tool('Bash', { command: `touch ${name}`, description: 'make a file' });

const sessionsOf = async (h: Harness): Promise<Json[]> =>
  (await h.ok('claude_code_session', { action: 'list' })).sessions;

/** One leg of a call, as it goes over the wire: the client fulfils nothing by itself. */
function leg(h: Harness, params: Record<string, unknown>): Promise<Json> {
  return h.client.request({ method: 'tools/call', params }, { allowInputRequired: true, timeout: 60_000 } as never);
}

const manual = { era: 'modern', form: () => cancel, clientOptions: { inputRequired: { autoFulfill: false } } } as const;

describe('a waiting call of a 2026-07-28 client', () => {
  const { ask } = shareSession({ era: 'modern' });

  it('ends with the form and goes on with the same session, be it a start, a reply or a fork', async () => {
    let answer: FormAnswer = allowOnce;
    const h = await startHarness({ era: 'modern', form: () => answer });
    const made = { status: 'idle', result: { result: 'made it' } };
    const started = h.model.on('go').reply(touch('made.txt'), text('made it'));
    const { sessionId, ...done } = await h.ok('claude_code', { prompt: 'go', waitMs: 60_000 }, patient);
    expect(done).toMatchObject(made);
    expect(await sessionsOf(h)).toMatchObject([{ sessionId }]);
    expect(h.model.requestsFor(started)).toHaveLength(2);
    expect(h.forms).toHaveLength(1);

    const replied = h.model.on('and now').reply(touch('more.txt'), text('made it'));
    const reply = { sessionId, prompt: 'and now', waitMs: 60_000 };
    expect(await h.ok('claude_code_reply', reply, patient)).toMatchObject({ sessionId, ...made });
    expect(h.forms).toHaveLength(2);
    const { userTexts } = h.model.requestsFor(replied).at(-1)!;
    expect(userTexts.filter((said) => said.includes('and now'))).toHaveLength(1);

    h.model.on('or so').reply(touch('other.txt'), text('made it'));
    const fork = await h.ok('claude_code_reply', { ...reply, prompt: 'or so', forkSession: true }, patient);
    expect(fork).toMatchObject(made);
    expect(fork.sessionId).not.toBe(sessionId);
    expect(await sessionsOf(h)).toHaveLength(2);

    // The person closes the form: the start is not repeated, and its answer has the actions.
    answer = cancel;
    h.model.on('at last').reply(touch('last.txt'), text('made it'));
    const asked = await h.ok('claude_code', { prompt: 'at last', waitMs: 60_000 }, patient);
    expect(asked).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
    expect(await sessionsOf(h)).toHaveLength(3);
    await h.allow(asked.sessionId);
    await h.waitUntilRest(asked.sessionId);
    expect(h.forms).toHaveLength(4);
  });

  it('asks no more often than clients go along with; the next call asks on', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `one-of-many-${index}.txt`);
    const { h, sessionId, forms } = await ask(() => allowOnce, { replies: names.map(touch) });
    const wait = { action: 'wait', sessionId, waitMs: 60_000 };
    expect(await h.ok('claude_code_check', wait, patient)).toMatchObject({ status: 'waiting_permission' });
    expect(forms().length).toBeLessThanOrEqual(9);
    expect(await h.ok('claude_code_check', wait, patient)).toMatchObject({ status: 'idle' });
    // None was asked twice, and none was passed over.
    expect(new Set(forms().map(({ message }) => /touch (\S+)/.exec(message)?.[1]))).toEqual(new Set(names));
    expect(forms()).toHaveLength(names.length);
  });

  it('does not ask when it does not wait', async () => {
    const { h, sessionId, forms } = await ask(() => allowOnce);
    const poll = { action: 'poll', sessionId };
    await eventually(async () => (await h.ok('claude_code_check', poll)).actions?.length, {
      what: 'the request is open',
    });
    expect(forms()).toEqual([]);
    await h.waitUntilRest(sessionId);
  });

  it('does not ask twice when two calls wait: the other holds too', async () => {
    const person = new SlowPerson();
    const { h, sessionId, outcomes } = await ask(person.form);
    const wait = { action: 'wait', sessionId };
    const both = [h.ok('claude_code_check', wait), h.ok('claude_code_check', wait)];
    const { answer } = await person.nextForm();
    answer(allowOnce);
    for (const waiting of both) expect(await waiting).toMatchObject({ status: 'idle' });
    expect(person.shown).toHaveLength(1);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });

  it('that is cancelled takes no form with it: the next one asks', async () => {
    const held = gate(touch('held.txt'));
    const { h, sessionId, forms, outcomes } = await ask(() => allowOnce, { replies: [held] });
    await held.arrived;
    const lostInterest = new AbortController();
    const lost = h.call('claude_code_check', { action: 'wait', sessionId }, { signal: lostInterest.signal });
    // An answer to this says that the call before it has arrived.
    await h.ok('claude_code_check', { action: 'poll', sessionId });
    lostInterest.abort();
    await expect(lost).rejects.toThrow();
    held.release();
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(1);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });
});

it('what a call leaves with the client cannot be changed or used elsewhere, and answers only what was asked', async () => {
  const h = await startHarness(manual);
  h.model.on('go').reply(touch('made.txt'), text('made it'));
  const call = { name: 'claude_code', arguments: { prompt: 'go', cwd: h.project, waitMs: 60_000 } };
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
  expect(existsSync(`${h.project}/made.txt`)).toBe(false);

  // Back without an answer, it counts as a failed form.
  const again = await leg(h, { ...call, requestState: asked.requestState });
  expect(again.structuredContent).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
  expect(await sessionsOf(h)).toHaveLength(1);
});

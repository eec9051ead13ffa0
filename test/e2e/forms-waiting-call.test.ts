import { existsSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { gate, text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { allowOnce, cancel, outcomes, SlowPerson, start } from './forms-support.ts';

vi.setConfig({ testTimeout: 120_000 });

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
  it('that starts a session ends with the form and goes on with the same session', async () => {
    const h = await startHarness({ era: 'modern', form: () => allowOnce });
    const script = h.model.on('go').reply(touch('made.txt'), text('made it'));
    const done = await h.ok(
      'claude_code',
      { prompt: 'go', cwd: h.project, waitMs: 60_000, sessionInitTimeoutMs: 50_000 },
      patient,
    );
    expect(done).toMatchObject({ status: 'idle', result: { result: 'made it' } });
    expect(h.forms).toHaveLength(1);
    expect(await sessionsOf(h)).toMatchObject([{ sessionId: done.sessionId }]);
    expect(h.model.requestsFor(script)).toHaveLength(2);
  });

  it('that replies sends the message once', async () => {
    const h = await startHarness({ era: 'modern', form: () => allowOnce });
    h.model.on('go').reply(text('hello'));
    const sessionId = await start(h, 'go');
    await h.waitUntilRest(sessionId);
    const script = h.model.on('and now').reply(touch('made.txt'), text('made it'));
    const done = await h.ok(
      'claude_code_reply',
      { sessionId, prompt: 'and now', waitMs: 60_000, sessionInitTimeoutMs: 50_000 },
      patient,
    );
    expect(done).toMatchObject({ sessionId, status: 'idle', result: { result: 'made it' } });
    expect(h.forms).toHaveLength(1);
    expect(
      h.model
        .requestsFor(script)
        .at(-1)!
        .userTexts.filter((said) => said.includes('and now')),
    ).toHaveLength(1);
  });

  it('that forks goes on with the one fork', async () => {
    const h = await startHarness({ era: 'modern', form: () => allowOnce });
    h.model.on('go').reply(text('hello'));
    const sessionId = await start(h, 'go');
    await h.waitUntilRest(sessionId);
    h.model.on('and now').reply(touch('made.txt'), text('made it'));
    const fork = { sessionId, prompt: 'and now', forkSession: true, waitMs: 60_000 };
    const done = await h.ok('claude_code_reply', fork, patient);
    expect(done).toMatchObject({ status: 'idle', result: { result: 'made it' } });
    expect(done.sessionId).not.toBe(sessionId);
    expect(await sessionsOf(h)).toHaveLength(2);
  });

  it('answers with the actions when the user closes the form, and the start is not repeated', async () => {
    const h = await startHarness({ era: 'modern', form: () => cancel });
    h.model.on('go').reply(touch('made.txt'), text('made it'));
    const asked = await h.ok(
      'claude_code',
      { prompt: 'go', cwd: h.project, waitMs: 60_000, sessionInitTimeoutMs: 50_000 },
      patient,
    );
    expect(asked).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
    expect(await sessionsOf(h)).toHaveLength(1);
    await h.allow(asked.sessionId);
    await h.waitUntilRest(asked.sessionId);
    expect(h.forms).toHaveLength(1);
  });

  it('asks no more often than clients go along with; the next call asks on', async () => {
    const h = await startHarness({ era: 'modern', form: () => allowOnce });
    const names = Array.from({ length: 12 }, (_, index) => `made-${index}.txt`);
    h.model.on('go').reply(...names.map(touch), text('made them'));
    const asked = await h.ok(
      'claude_code',
      { prompt: 'go', cwd: h.project, waitMs: 60_000, sessionInitTimeoutMs: 50_000 },
      patient,
    );
    expect(asked).toMatchObject({ status: 'waiting_permission' });
    const first = h.forms.length;
    expect(first).toBeLessThanOrEqual(9);
    const wait = { action: 'wait', sessionId: asked.sessionId, waitMs: 60_000 };
    expect(await h.ok('claude_code_check', wait, patient)).toMatchObject({ status: 'idle' });
    // None was asked twice, and none was passed over.
    expect(new Set(h.forms.map(({ message }) => /touch (\S+)/.exec(message)?.[1]))).toEqual(new Set(names));
    expect(h.forms).toHaveLength(names.length);
  });

  it('does not ask when it does not wait', async () => {
    const h = await startHarness({ era: 'modern', form: () => allowOnce });
    h.model.on('go').reply(touch('made.txt'), text('made it'));
    const sessionId = await start(h, 'go');
    const poll = { action: 'poll', sessionId };
    await eventually(async () => (await h.ok('claude_code_check', poll)).actions?.length, {
      what: 'the request is open',
    });
    expect(h.forms).toEqual([]);
  });

  it('does not ask twice when two calls wait: the other holds too', async () => {
    const person = new SlowPerson();
    const h = await startHarness({ era: 'modern', form: person.form });
    h.model.on('go').reply(touch('made.txt'), text('made it'));
    const sessionId = await start(h, 'go');
    const wait = { action: 'wait', sessionId };
    const both = [h.ok('claude_code_check', wait), h.ok('claude_code_check', wait)];
    const { answer } = await person.nextForm();
    answer(allowOnce);
    for (const waiting of both) expect(await waiting).toMatchObject({ status: 'idle' });
    expect(person.shown).toHaveLength(1);
    expect(await outcomes(h, sessionId)).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });

  it('that is cancelled takes no form with it: the next one asks', async () => {
    const h = await startHarness({ era: 'modern', form: () => allowOnce });
    const held = gate(touch('made.txt'));
    h.model.on('go').reply(held, text('made it'));
    const sessionId = await start(h, 'go');
    await held.arrived;
    const lostInterest = new AbortController();
    const lost = h.call('claude_code_check', { action: 'wait', sessionId }, { signal: lostInterest.signal });
    // An answer to this says that the call before it has arrived.
    await h.ok('claude_code_check', { action: 'poll', sessionId });
    lostInterest.abort();
    await expect(lost).rejects.toThrow();
    held.release();
    await h.waitUntilRest(sessionId);
    expect(h.forms).toHaveLength(1);
    expect(await outcomes(h, sessionId)).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });
});

describe('what a call leaves with the client', () => {
  const asking = async (h: Harness): Promise<{ call: Record<string, unknown>; asked: Json }> => {
    h.model.on('go').reply(touch('made.txt'), text('made it'));
    const call = { name: 'claude_code', arguments: { prompt: 'go', cwd: h.project, waitMs: 60_000 } };
    const asked = await leg(h, call);
    expect(asked).toMatchObject({ requestState: expect.any(String) });
    return { call, asked };
  };

  it('cannot be changed', async () => {
    const h = await startHarness(manual);
    const { call, asked } = await asking(h);
    const [version, body, mac] = asked.requestState.split('.');
    const state = JSON.parse(Buffer.from(body, 'base64url').toString());
    const changed = Buffer.from(JSON.stringify({ ...state, p: { ...state.p, sessionId: 'another' } }));
    const forged = [version, changed.toString('base64url'), mac].join('.');
    await expect(leg(h, { ...call, requestState: forged })).rejects.toThrow('requestState');
    expect(await sessionsOf(h)).toHaveLength(1);
  });

  it('is of no use to another tool', async () => {
    const h = await startHarness(manual);
    const { asked } = await asking(h);
    const [{ sessionId }] = await sessionsOf(h);
    const reply = { name: 'claude_code_reply', arguments: { sessionId, prompt: 'on' } };
    const answer = await leg(h, { ...reply, requestState: asked.requestState });
    expect(answer).toMatchObject({ isError: true });
    expect(answer.content[0].text).toContain('INVALID_ARGUMENT');
  });

  it('answers nothing that was not asked', async () => {
    const h = await startHarness(manual);
    const { asked } = await asking(h);
    const [{ sessionId }] = await sessionsOf(h);
    const [id] = Object.keys(asked.inputRequests);
    const answer = { action: 'accept', content: { decision: 'Allow once' } };
    // Answers without the state of the call that asked.
    const unasked = { name: 'claude_code_check', arguments: { action: 'wait', sessionId, waitMs: 200 } };
    await leg(h, { ...unasked, inputResponses: { [id!]: answer } });
    expect(await outcomes(h, sessionId)).toEqual([]);
    expect(existsSync(`${h.project}/made.txt`)).toBe(false);
  });

  it('counts as a failed form when it comes back without an answer', async () => {
    const h = await startHarness(manual);
    const { call, asked } = await asking(h);
    const again = await leg(h, { ...call, requestState: asked.requestState });
    expect(again.structuredContent).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
    expect(await sessionsOf(h)).toHaveLength(1);
  });
});

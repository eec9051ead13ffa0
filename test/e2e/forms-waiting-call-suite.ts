/** Calls that wait, and return forms. */

import { expect, it } from 'vitest';
import { gate, text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { allowOnce, cancel, SlowPerson, type SharedSession } from './forms-support.ts';

const patient = { timeout: 60_000 };

export const touch = (name: string): MessageReply =>
  tool('Bash', { command: `touch ${name}`, description: 'make a file' });

export const sessionsOf = async (h: Harness): Promise<Json[]> =>
  (await h.ok('claude_code_session', { action: 'list' })).sessions;

/** With a 2026-07-28 client, a call that waits returns the forms. */
export function waitingCalls({ harness, ask, setPerson }: SharedSession): void {
  it('returns the form and then continues the same session, for a start, a reply and a fork', async () => {
    const h = harness();
    const before = (await sessionsOf(h)).length;
    const shown = h.forms.length;
    setPerson(() => allowOnce);
    const made = { status: 'idle', result: { result: 'made it' } };
    const started = h.model.on('go').reply(touch('started.txt'), text('made it'));
    const { sessionId, ...done } = await h.ok('claude_code', { prompt: 'go', waitMs: 60_000 }, patient);
    expect(done).toMatchObject(made);
    expect(await sessionsOf(h)).toHaveLength(before + 1);
    expect(h.model.requestsFor(started)).toHaveLength(2);
    expect(h.forms).toHaveLength(shown + 1);

    const replied = h.model.on('and now').reply(touch('more.txt'), text('made it'));
    const reply = { sessionId, prompt: 'and now', waitMs: 60_000 };
    expect(await h.ok('claude_code_reply', reply, patient)).toMatchObject({ sessionId, ...made });
    expect(h.forms).toHaveLength(shown + 2);
    const { userTexts } = h.model.requestsFor(replied).at(-1)!;
    expect(userTexts.filter((said) => said.includes('and now'))).toHaveLength(1);

    h.model.on('or so').reply(touch('other.txt'), text('made it'));
    const fork = await h.ok('claude_code_reply', { ...reply, prompt: 'or so', forkSession: true }, patient);
    expect(fork).toMatchObject(made);
    expect(fork.sessionId).not.toBe(sessionId);
    expect(await sessionsOf(h)).toHaveLength(before + 2);

    // If the person closes the form, the start is not repeated, and its answer has the actions.
    setPerson(() => cancel);
    h.model.on('at last').reply(touch('last.txt'), text('made it'));
    const asked = await h.ok('claude_code', { prompt: 'at last', waitMs: 60_000 }, patient);
    expect(asked).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
    expect(await sessionsOf(h)).toHaveLength(before + 3);
    await h.allow(asked.sessionId);
    await h.waitUntilRest(asked.sessionId);
    expect(h.forms).toHaveLength(shown + 4);
  });

  it('shows no more forms than clients accept; the next call shows the rest', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `one-of-many-${index}.txt`);
    const { h, sessionId, forms } = await ask(() => allowOnce, { replies: names.map(touch) });
    const wait = { action: 'wait', sessionId, waitMs: 60_000 };
    expect(await h.ok('claude_code_check', wait, patient)).toMatchObject({ status: 'waiting_permission' });
    expect(forms().length).toBeLessThanOrEqual(9);
    expect(await h.ok('claude_code_check', wait, patient)).toMatchObject({ status: 'idle' });
    // None was shown twice or skipped.
    expect(new Set(forms().map(({ message }) => /touch (\S+)/.exec(message)?.[1]))).toEqual(new Set(names));
    expect(forms()).toHaveLength(names.length);
  });

  it('that does not wait shows no form', async () => {
    const { h, sessionId, forms } = await ask(() => allowOnce);
    const poll = { action: 'poll', sessionId };
    await eventually(async () => (await h.ok('claude_code_check', poll)).actions?.length, {
      what: 'the request is open',
    });
    expect(forms()).toEqual([]);
    await h.waitUntilRest(sessionId);
  });

  it('shows a form once even if another call waits too, and both continue', async () => {
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

  it('that is cancelled leaves the form to the next call', async () => {
    const held = gate(touch('held.txt'));
    const { h, sessionId, forms, outcomes } = await ask(() => allowOnce, { replies: [held] });
    await held.arrived;
    const controller = new AbortController();
    const cancelledCall = h.call('claude_code_check', { action: 'wait', sessionId }, { signal: controller.signal });
    // Once this is answered, the call before it has arrived.
    await h.ok('claude_code_check', { action: 'poll', sessionId });
    controller.abort();
    await expect(cancelledCall).rejects.toThrow();
    held.release();
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(1);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });
}

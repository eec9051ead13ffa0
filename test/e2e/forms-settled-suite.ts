/** How forms end when they are not simply answered, and what calls do meanwhile. */

import { existsSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { reply, tool } from '../../src/scripted-model/reply.ts';
import type { Era } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { accept, allowOnce, cancel, SlowPerson, type SharedSession, type OutcomeEvent } from './forms-support.ts';

const touchAgain = tool('Bash', { command: 'touch again.txt', description: 'make a file' });

const expectOne = (settled: OutcomeEvent[], one: Partial<OutcomeEvent>): void => {
  expect(settled).toHaveLength(1);
  expect(settled[0]).toMatchObject(one);
};

/** Forms that are cancelled, invalid, late, failed or never answered. */
export function settledForms(era: Era, { ask }: SharedSession): void {
  it('that is cancelled leaves the request to the caller, and is not shown again', async () => {
    const { h, sessionId, forms, outcomes } = await ask(() => cancel);
    // Waiting again does not ask again.
    for (let i = 0; i < 3; i++) expect(await h.waitForRequest(sessionId)).toMatchObject({ toolName: 'Bash' });
    await h.allow(sessionId);
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(1);
    expectOne(await outcomes(), { decision: 'allow', source: 'caller' });
  });

  it('that comes back with invalid content leaves the request to the caller', async () => {
    const { h, sessionId, file, forms, outcomes } = await ask(() => accept({ message: 'Allow once' }));
    await eventually(() => h.waitForRequest(sessionId).then(() => forms().length), { what: 'the form was shown' });
    await h.deny(sessionId, { message: 'no' });
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(1);
    expectOne(await outcomes(), { decision: 'deny', source: 'caller', message: 'no' });
    expect(existsSync(file)).toBe(false);
  });

  it('that is answered after the caller answered has no effect', async () => {
    const person = new SlowPerson();
    const { h, sessionId, file, outcomes, auditedDecisions } = await ask(person.form);
    const waiting = h.ok('claude_code_check', { action: 'wait', sessionId });
    const { answer } = await person.nextForm();
    await h.deny(sessionId, { message: 'the caller was faster' });
    answer(allowOnce);
    await waiting;
    await h.waitUntilRest(sessionId);
    expectOne(await outcomes(), { decision: 'deny', source: 'caller', message: 'the caller was faster' });
    expect(existsSync(file)).toBe(false);
    await eventually(() => auditedDecisions().length, { what: 'the decision is audited' });
    expect(auditedDecisions()).toEqual([{ who: 'caller', what: 'Bash', outcome: 'deny' }]);
  });

  it('that is answered before the caller answers takes effect', async () => {
    const person = new SlowPerson();
    const { h, sessionId, outcomes } = await ask(person.form);
    const waiting = h.ok('claude_code_check', { action: 'wait', sessionId });
    const { answer } = await person.nextForm();
    const { actions } = await h.ok('claude_code_check', { action: 'poll', sessionId });
    answer(allowOnce);
    await waiting;
    await h.waitUntilRest(sessionId);
    await h.fails(
      'claude_code_check',
      { action: 'respond_permission', sessionId, requestId: actions[0].requestId, decision: 'deny' },
      'PERMISSION_REQUEST_NOT_FOUND',
    );
    expectOne(await outcomes(), { decision: 'allow', source: 'human' });
  });

  it('that fails in the client leaves the request to the caller', async () => {
    const { h, sessionId, forms, outcomes } = await ask(() => {
      throw new Error('no screen');
    });
    // A 2026-07-28 client fails the call that brought the form.
    if (era === 'modern') await expect(h.call('claude_code_check', { action: 'wait', sessionId })).rejects.toThrow();
    await h.allow(sessionId);
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(1);
    expectOne(await outcomes(), { decision: 'allow', source: 'caller' });
  });

  it('that nobody answers ends when the request times out or the session is cancelled', async () => {
    const person = new SlowPerson();
    const { h, sessionId, script, file, outcomes } = await ask(person.form, {
      own: { permissionRequestTimeoutMs: 2_500 },
    });
    const waiting = h.ok('claude_code_check', { action: 'wait', sessionId });
    const { withdrawn, answer } = await person.nextForm();
    await eventually(async () => (await outcomes()).length, { what: 'the request is settled' });
    // The person answers too late.
    if (era === 'modern') answer(allowOnce);
    else await eventually(() => withdrawn.aborted, { what: 'the form is withdrawn' });
    await waiting;
    await h.waitUntilRest(sessionId);
    expectOne(await outcomes(), { decision: 'deny', source: 'timeout' });
    expect(h.model.requestsFor(script).at(-1)!.toolResults[0]!.text).toContain('It was not refused');
    expect(existsSync(file)).toBe(false);
    expect(person.shown).toHaveLength(1);

    // The same with a session that is cancelled.
    h.model.on('and again').reply(touchAgain);
    await h.say(sessionId, 'and again');
    const cancelled = era === 'legacy' ? undefined : h.ok('claude_code_check', { action: 'wait', sessionId });
    const form = await person.nextForm(1);
    await h.ok('claude_code_session', { action: 'cancel', sessionId });
    if (era === 'legacy') await eventually(() => form.withdrawn.aborted, { what: 'the form is withdrawn by cancel' });
    else form.answer(allowOnce);
    await cancelled;
    expect((await outcomes()).at(-1)).toMatchObject({ decision: 'deny', source: 'cancel' });
  });
}

/** While a form is open. */
export function heldForms({ ask }: SharedSession): void {
  it('a wait continues until the person decides', async () => {
    const person = new SlowPerson();
    const { h, sessionId } = await ask(person.form);
    const first = h.ok(...h.dialect.watch(sessionId, 45_000));
    const { answer } = await person.nextForm();
    // When its time is up, a wait reports that the form is still open, and the next one waits again.
    const told = await h.ok(...h.dialect.watch(sessionId, 300));
    expect(h.dialect.view(told).status).toBe('waiting');
    expect(h.dialect.openRequests(told)).toMatchObject([{ toolName: 'Bash', askedPerson: true }]);
    const next = h.ok(...h.dialect.watch(sessionId, 45_000));
    answer(allowOnce);
    for (const wait of [first, next])
      expect(h.dialect.view(await wait)).toMatchObject({ status: 'rest', answer: 'done' });
    expect(person.shown).toHaveLength(1);
  });

  it('a wait ends when the person closes it, and the caller can answer', async () => {
    const person = new SlowPerson();
    const { h, sessionId } = await ask(person.form);
    const wait = h.ok(...h.dialect.watch(sessionId, 45_000));
    const { answer } = await person.nextForm();
    answer(cancel);
    const left = await wait;
    const [request] = h.dialect.openRequests(left);
    expect(request).toMatchObject({ toolName: 'Bash' });
    expect(request).not.toHaveProperty('askedPerson');
    // The next wait returns at once.
    expect((await h.watch(sessionId)).status).toBe('waiting');
    await h.allow(sessionId);
    expect(await h.finish(sessionId)).toMatchObject({ answer: 'done' });
    expect(person.shown).toHaveLength(1);
  });
}

/** Only a legacy client's form can be withdrawn. */
export function withdrawnForms({ harness, ask }: SharedSession): void {
  it('is withdrawn when the caller answers', async () => {
    const person = new SlowPerson();
    const { h, sessionId } = await ask(person.form);
    const { withdrawn } = await person.nextForm();
    expect(withdrawn.aborted).toBe(false);
    await h.allow(sessionId);
    await eventually(() => withdrawn.aborted, { what: 'the form is withdrawn' });
    await h.waitUntilRest(sessionId);
  });

  it('is withdrawn on interrupt', async () => {
    const person = new SlowPerson();
    const { h, sessionId, outcomes } = await ask(person.form);
    const { withdrawn } = await person.nextForm();
    await h.ok('claude_code_session', { action: 'interrupt', sessionId });
    await eventually(() => withdrawn.aborted, { what: 'the form is withdrawn' });
    expectOne(await outcomes(), { decision: 'deny', source: 'interrupt' });
    await h.waitUntilRest(sessionId);
  });

  it('stays open next to the forms of other requests, and each is answered separately', async () => {
    const person = new SlowPerson();
    const files = [`${harness().home}/one.txt`, `${harness().home}/two.txt`];
    for (const file of files) writeFileSync(file, 'a secret');
    const replies = [reply().tool('Read', { file_path: files[0] }).tool('Read', { file_path: files[1] })];
    const { h, sessionId, outcomes } = await ask(person.form, { replies });
    const [one, two] = [await person.nextForm(0), await person.nextForm(1)];
    two.answer({ action: 'decline' });
    await eventually(async () => (await outcomes()).length === 1, { what: 'the second is settled' });
    expect(one.withdrawn.aborted).toBe(false);
    one.answer(allowOnce);
    await h.waitUntilRest(sessionId);
    expect((await outcomes()).map(({ decision, source }) => `${decision} ${source}`)).toEqual([
      'deny human',
      'allow human',
    ]);
  });
}

/** Ends the session's process and the server: later tests would need another one. */
export function formsLeftOpen(era: Era, { ask }: SharedSession): void {
  it.runIf(era === 'legacy')('is withdrawn when Claude Code crashes', async () => {
    const person = new SlowPerson();
    const { h, sessionId, outcomes } = await ask(person.form);
    const { withdrawn } = await person.nextForm();
    const claude = (await h.processes()).find(({ command }) => command.includes(sessionId))!;
    process.kill(claude.pid, 'SIGKILL');
    await eventually(() => withdrawn.aborted, { what: 'the form is withdrawn' });
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'error' });
    expectOne(await outcomes(), { decision: 'deny', source: 'cancel' });
  });

  it('is denied when the client disconnects, and no process is left', async () => {
    const person = new SlowPerson();
    const { h, sessionId, auditedDecisions } = await ask(person.form);
    void h.call('claude_code_check', { action: 'wait', sessionId }).catch(() => undefined);
    await person.nextForm();
    h.server.closeStdin();
    expect(await h.server.exited).toEqual({ code: 0, signal: null });
    expect(auditedDecisions()).toEqual([{ who: 'shutdown', what: 'Bash', outcome: 'deny' }]);
    expect(await eventually(async () => (await h.processes()).length === 0, { what: 'all processes are gone' })).toBe(
      true,
    );
  });
}

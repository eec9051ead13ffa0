/** Nothing leaves a hub before it is stored: not a form, not a decision for Claude Code, not an audit record. */

import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openAudit } from '../../src/audit/audit-log.ts';
import type { AuditRecord } from '../../src/engine/ports.ts';
import { auditMissingDecisions } from '../../src/hub/missing-decisions.ts';
import type { ConnectedClient, FormEnd } from '../../src/engine/requests/approvals.ts';
import { LOCAL } from '../../src/engine/rules/access.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES, temporaryDirectory } from '../store/stores.ts';
import { ANN } from './test-client.ts';
import { startTestHub, type TestHub } from './test-hub.ts';

interface HeldStore {
  readonly store: Store;
  /** From now on writes wait for `release`. */
  hold(): void;
  release(): void;
  /** Whether a write is waiting. */
  readonly holding: boolean;
}

async function heldStore(): Promise<HeldStore> {
  const opened = await STORES.sqlite();
  const store = Object.create(opened) as Store;
  let open: () => void = () => undefined;
  let held: Promise<void> | undefined;
  let waiting = 0;
  store.write = async (changes, by) => {
    waiting++;
    await held;
    waiting--;
    await opened.write(changes, by);
  };
  return {
    store,
    hold: () => {
      held = new Promise((resolve) => (open = resolve));
    },
    release: () => open(),
    get holding() {
      return waiting > 0;
    },
  };
}

/** A client that shows forms at any time and counts them. */
function formClient(shown: string[], answer = new Promise<FormEnd>(() => undefined)): ConnectedClient {
  return {
    principal: LOCAL,
    showsForms: true,
    showForm: (_session, { id }) => {
      shown.push(id);
      return answer;
    },
  };
}

async function asking(hub: TestHub, client?: ConnectedClient) {
  if (client) hub.engine.approvals.connect(client);
  const session = await hub.engine.start({ prompt: 'go', options: {}, by: client });
  await hub.engine.stored();
  const agent = await hub.agent();
  const ask = (id: string) => {
    let decision: { behavior: string } | undefined;
    void agent.ask(id, 'Bash', { command: `touch ${id}` }).then((decided) => (decision = decided));
    return { decision: () => decision };
  };
  return { session, ask, open: (id: string) => eventually(() => session.findRequest(id), { what: `${id} is open` }) };
}

test('a form is shown once its request is stored', async () => {
  const disk = await heldStore();
  const hub = await startTestHub(disk.store);
  const shown: string[] = [];
  const { ask, open } = await asking(hub, formClient(shown));
  disk.hold();
  ask('r1');
  await open('r1');
  await eventually(() => disk.holding, { what: 'the request is being written' });
  expect(shown).toEqual([]);
  disk.release();
  await eventually(() => shown.length > 0, { what: 'the form is shown' });
  expect(await disk.store.request('r1')).toMatchObject({ id: 'r1' });
});

test.each(['a caller', 'a person', 'a form'])('Claude Code gets the decision of %s once it is stored', async (who) => {
  const disk = await heldStore();
  const hub = await startTestHub(disk.store);
  let answer: (end: FormEnd) => void = () => undefined;
  const client = formClient([], new Promise((resolve) => (answer = resolve)));
  const { session, ask, open } = await asking(hub, who === 'a form' ? client : undefined);
  const { decision } = ask('r1');
  await open('r1');
  await hub.engine.stored();
  disk.hold();
  if (who === 'a caller') hub.engine.respond(session.id, 'r1', { decision: 'allow' });
  else if (who === 'a person') hub.engine.respondAsPerson(session.id, 'r1', { decision: 'allow' }, LOCAL);
  else answer({ kind: 'answered', answer: { decision: 'allow' } });
  await eventually(() => disk.holding, { what: 'the decision is being written' });
  expect(decision()).toBeUndefined();
  expect(hub.audit.filter(({ kind }) => kind === 'decision')).toEqual([]);
  disk.release();
  await eventually(decision, { what: 'Claude Code has the decision' });
  expect(await disk.store.request('r1')).toMatchObject({ outcome: { decision: 'allow' } });
  await eventually(() => hub.audit.some(({ kind }) => kind === 'decision'), { what: 'the decision is audited' });
  expect(hub.audit.filter(({ kind }) => kind === 'decision')).toHaveLength(1);
});

test('a hub killed between deciding and storing leaves the request open, and one decision in the audit', async () => {
  const disk = await heldStore();
  const killed = await startTestHub(disk.store);
  const { session, ask, open } = await asking(killed);
  const { decision } = ask('r1');
  await open('r1');
  await killed.engine.stored();
  disk.hold();
  killed.engine.respond(session.id, 'r1', { decision: 'allow' });
  await eventually(() => disk.holding, { what: 'the decision is being written' });
  killed.kill();
  const next = await startTestHub(Object.getPrototypeOf(disk.store) as Store);
  expect(decision()).toBeUndefined();
  expect(next.engine.session(session.id).requests).toMatchObject([{ id: 'r1' }]);
  next.engine.respond(session.id, 'r1', { decision: 'deny', message: 'no' });
  await next.engine.stored();
  const decisions = [...killed.audit, ...next.audit].filter(({ kind }) => kind === 'decision');
  expect(decisions).toMatchObject([{ outcome: 'deny', details: { request: 'r1' } }]);
});

test('a repeated call that was allowed is not asked about again when its process has not heard it from a killed hub', async () => {
  const store = await STORES.sqlite();
  const input = { command: 'make' };
  const first = await startTestHub(store);
  const { session } = await asking(first);
  void (await first.agent()).ask('r1', 'Bash', input);
  await eventually(() => session.findRequest('r1'), { what: 'the request is open' });
  await first.engine.stored();
  first.kill();

  const second = await startTestHub(store);
  second.engine.respond(session.id, 'r1', { decision: 'allow' });
  const agent = await second.agent();
  expect(agent.prompts).toMatchObject([expect.stringContaining('was allowed')]);
  expect(await agent.ask('r2', 'Bash', input)).toEqual({ behavior: 'allow' });
  second.kill();

  const third = await startTestHub(store, { keeps: session.id });
  const kept = await eventually(() => third.agents[0], { what: 'the process is adopted' });
  expect(await kept.askAgain('r2', 'Bash', input)).toEqual({ behavior: 'allow' });
  // Another call is another question.
  void kept.ask('r3', 'Bash', input);
  await eventually(() => third.engine.session(session.id).findRequest('r3'), { what: 'the next request is open' });
  expect(third.engine.session(session.id).requests).toHaveLength(1);
});

test('a decision that was stored but not audited when the hub was killed is audited by the next one, once', async () => {
  const store = await STORES.sqlite();
  const hub = await startTestHub(store);
  const { session, ask, open } = await asking(hub);
  for (const [at, decision] of (['allow', 'deny', 'allow'] as const).entries()) {
    const id = `r${String(at)}`;
    ask(id);
    await open(id);
    const answer = decision === 'deny' ? { decision, message: 'no' } : { decision };
    hub.engine.respondAsPerson(
      session.id,
      id,
      { ...answer, ...(at === 2 && { updatedInput: { command: 'ls' } }) },
      ANN,
    );
  }
  await hub.engine.stored();
  const decisions = await eventually(
    () => {
      const found = hub.audit.filter(({ kind }) => kind === 'decision');
      return found.length === 3 && found;
    },
    { what: 'all three are audited' },
  );
  const auditLog = join(await temporaryDirectory(), 'audit.jsonl');
  const audited = openAudit({ path: auditLog, warn: expect.unreachable });
  audited.record(decisions[0]!);
  await audited.close();

  const added = async (by = hub.by.hub, startedAt = hub.clock.wallTime() + 1): Promise<AuditRecord[]> => {
    const next = openAudit({ path: auditLog, warn: expect.unreachable });
    const records: AuditRecord[] = [];
    const audit = { record: (entry: AuditRecord) => (records.push(entry), next.record(entry)) };
    await auditMissingDecisions({ store, hub: by, startedAt, auditLog, audit });
    await next.close();
    return records;
  };
  expect(await added('another hub')).toEqual([]);
  expect(await added(hub.by.hub, hub.clock.wallTime() - 60_000)).toEqual([]);
  const missing = decisions.slice(1).map((entry) => ({
    ...entry,
    details: { ...entry.details, decidedAt: expect.any(String) },
  }));
  expect(await added()).toEqual(missing);
  expect(await added()).toEqual([]);
});

test('stopping a turn does not wait for the store, and a decision still being stored is not carried out', async () => {
  const disk = await heldStore();
  const hub = await startTestHub(disk.store);
  onTestFinished(() => disk.release());
  const { session, ask, open } = await asking(hub);
  const first = ask('r1');
  const second = ask('r2');
  await open('r2');
  await hub.engine.stored();
  disk.hold();
  hub.engine.respond(session.id, 'r1', { decision: 'allow' });
  await eventually(() => disk.holding, { what: 'the decision is being written' });
  await session.cancel('enough', 'caller');
  expect(second.decision()).toMatchObject({ behavior: 'deny', interrupt: true });
  expect(session.state).toBe('cancelled');
  expect(first.decision()).toBeUndefined();
});

test('while the store is unavailable nothing is decided, but a turn can be stopped', async () => {
  const opened = await STORES.sqlite();
  const store = Object.create(opened) as Store;
  let isAway = false;
  store.write = async (changes, by) => {
    if (isAway) throw new Error('the disk is full');
    await opened.write(changes, by);
  };
  const hub = await startTestHub(store, { warn: () => undefined });
  const { session, ask, open } = await asking(hub);
  const { decision } = ask('r1');
  await open('r1');
  await hub.engine.stored();
  isAway = true;
  ask('r2');
  await open('r2');
  await expect(hub.engine.stored()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(() => hub.engine.respond(session.id, 'r1', { decision: 'allow' })).toThrow(/Nothing was done; try again/);
  expect(session.findRequest('r1')).toBeDefined();
  hub.engine.respond(session.id, 'r1', { decision: 'deny', message: 'stop', interrupt: true });
  await eventually(decision, { what: 'Claude Code is told to stop' });
  isAway = false;
  await eventually(async () => (await opened.request('r1'))?.outcome !== undefined, { what: 'the stop is stored' });
});

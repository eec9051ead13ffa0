import { expect, onTestFinished, test, vi } from 'vitest';
import { DomainError } from '../../src/errors/errors.ts';
import { Journal } from '../../src/hub/journal.ts';
import { StoreConflict, type Store } from '../../src/store/contract.ts';
import { textEvent } from '../harness/agent-messages.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { startTestHub } from './test-hub.ts';

/** A store whose writes fail while `away.now` is set. */
async function interruptible(): Promise<{ store: Store; away: { now: boolean } }> {
  const store = await STORES.sqlite();
  const away = { now: false };
  const { write } = store;
  store.write = async (changes, by) => {
    if (away.now) throw new DomainError('UNAVAILABLE', 'the disk is full');
    await write(changes, by);
  };
  return { store, away };
}

test('while the store is unavailable, calls fail with UNAVAILABLE, sessions keep running, and everything is stored afterwards', async () => {
  const { store, away } = await interruptible();
  const warned: string[] = [];
  const hub = await startTestHub(store, { warn: (line) => void warned.push(line) });
  const session = await hub.engine.start({ prompt: 'go', options: {} });
  await hub.engine.stored();
  away.now = true;
  const agent = await hub.agent();
  agent.answer('done');
  await expect(hub.engine.stored()).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: /the disk is full.*check the session before you send the call again/,
  });
  // Further calls fail at once instead of waiting for the store.
  await expect(hub.engine.stored()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(session.state).toBe('idle');
  expect(await store.session(session.id)).not.toMatchObject({ state: { tag: 'idle' } });
  away.now = false;
  await eventually(async () => (await store.session(session.id))?.state.tag === 'idle', {
    what: 'the session is stored',
  });
  await hub.engine.stored();
  const { events, lastId } = await store.events(session.id, { limit: 100 });
  expect(events.map(({ id }) => id)).toEqual(Array.from({ length: lastId }, (_none, index) => index + 1));
  expect(warned.filter((line) => line.includes('the disk is full'))).toHaveLength(1);
});

test('a message that could not be stored is not delivered, and leaves its session at rest', async () => {
  const { store, away } = await interruptible();
  const hub = await startTestHub(store, { warn: () => undefined });
  const session = await hub.engine.start({ prompt: 'go', options: {} });
  const agent = await hub.agent();
  agent.answer('done');
  await eventually(() => session.atRest, { what: 'the first turn has ended' });
  await hub.engine.stored();
  const reply = (prompt: string) =>
    hub.engine.reply({ sessionId: session.id, prompt, disk: { kind: 'open', options: {} } });
  away.now = true;
  await expect(reply('lost')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(session.state).toBe('error');
  away.now = false;
  await eventually(
    () =>
      reply('taken').then(
        () => true,
        () => false,
      ),
    { what: 'the store is back' },
  );
  agent.answer('done again');
  await eventually(() => session.state === 'idle', { what: 'the second turn has ended' });
  expect(agent.prompts).toEqual(['go', 'taken']);
});

test('during a long store outage the backlog is bounded, and nothing new is started', async () => {
  const { store, away } = await interruptible();
  const hub = await startTestHub(store, { argv: ['--event-buffer-size', '50'], warn: () => undefined });
  const session = await hub.engine.start({ prompt: 'go', options: {} });
  const agent = await hub.agent();
  await hub.engine.stored();
  away.now = true;
  const decisions: Promise<unknown>[] = [];
  for (let round = 0; round < 20; round++) {
    decisions.push(agent.ask(`r${round}`, 'Bash', { command: `echo ${round}` }));
    await eventually(() => session.findRequest(`r${round}`), { what: `request r${round} is open` });
    session.decide(`r${round}`, { behavior: 'deny', message: 'no' }, 'timeout');
    for (let word = 0; word < 500; word++) agent.say(textEvent(`word ${word} of ${round}`));
  }
  agent.answer('done');
  expect(hub.journal.waiting).toBeLessThan(3_000);
  await expect(hub.engine.start({ prompt: 'more', options: {} })).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: /Nothing was done; try again\.$/,
  });
  const again = hub.engine.reply({ sessionId: session.id, prompt: 'more', disk: { kind: 'open', options: {} } });
  await expect(again).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(hub.agents).toHaveLength(1);

  away.now = false;
  await Promise.all(decisions);
  await eventually(async () => (await store.session(session.id))?.state.tag === 'idle', {
    what: 'the session is stored',
  });
  await hub.engine.stored();
  expect(hub.journal.waiting).toBe(0);
  for (let round = 0; round < 20; round++)
    expect(await store.request(`r${round}`)).toMatchObject({ outcome: { decision: 'deny', message: 'no' } });
  const { log } = session.conversation;
  const { events, lastId, droppedThrough } = await store.events(session.id, { limit: 1_000 });
  expect(lastId).toBe(log.nextId - 1);
  expect(droppedThrough).toBeGreaterThan(0);
  expect(droppedThrough).toBeLessThanOrEqual(log.droppedThrough);
  const stored = new Set(events.map(({ id }) => id));
  expect(log.from(1).events.filter(({ id }) => !stored.has(id))).toEqual([]);
});

test('only the event that the store refuses is missing from the log', async () => {
  const store = await STORES.sqlite();
  const { write } = store;
  store.write = async (changes, by) => {
    if (changes.some((change) => JSON.stringify(change).includes('refuse me')))
      throw new StoreConflict('outOfStep', 'refused');
    await write(changes, by);
  };
  const warned: string[] = [];
  const hub = await startTestHub(store, { warn: (line) => void warned.push(line) });
  const session = await hub.engine.start({ prompt: 'go', options: {} });
  const agent = await hub.agent();
  agent.say(textEvent('refuse me'), textEvent('keep me'));
  await hub.engine.stored();
  agent.answer('done');
  await hub.engine.stored();
  const { events, lastId, droppedThrough } = await store.events(session.id, { limit: 100 });
  expect(lastId).toBe(session.conversation.log.nextId - 1);
  expect(JSON.stringify(events)).toContain('keep me');
  expect(events.some(({ id }) => id === droppedThrough)).toBe(false);
  expect(warned).toHaveLength(1);
});

test('a store that goes away after it has refused one change loses none of the others', async () => {
  const store = await STORES.sqlite();
  const { write } = store;
  let away = 0;
  store.write = async (changes, by) => {
    if (away > 0 && away-- > 0) throw new DomainError('UNAVAILABLE', 'the store is away');
    if (changes.some((change) => JSON.stringify(change).includes('refuse me'))) {
      if (changes.length > 1) away = 2;
      throw new StoreConflict('outOfStep', 'refused');
    }
    await write(changes, by);
  };
  const hub = await startTestHub(store, { warn: () => undefined });
  const session = await hub.engine.start({ prompt: 'go', options: {} });
  const agent = await hub.agent();
  agent.say(textEvent('before it'), textEvent('refuse me'), textEvent('keep me'));
  agent.answer('done');
  await eventually(async () => (await store.session(session.id))?.state.tag === 'idle', {
    what: 'the session is stored',
  });
  await hub.engine.stored();
  const { events } = await store.events(session.id, { limit: 100 });
  const ids = events.map(({ id }) => id);
  const { nextId } = session.conversation.log;
  expect(
    Array.from({ length: nextId - 1 }, (_none, index) => index + 1).filter((id) => !ids.includes(id)),
  ).toHaveLength(1);
  for (const kept of ['before it', 'keep me']) expect(JSON.stringify(events)).toContain(kept);
});

test('a hub stops writing once a new incarnation has started', async () => {
  const store = await STORES.sqlite();
  const warned: string[] = [];
  const first = await startTestHub(store, { warn: (line) => void warned.push(line) });
  const session = await first.engine.start({ prompt: 'go', options: {} });
  await first.engine.stored();
  const second = await startTestHub(store);
  await second.engine.finder.recall(session.id);
  await second.engine.stored();
  (await first.agent()).answer('too late');
  await expect(first.engine.stored()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  const { events } = await store.events(session.id, { limit: 100 });
  expect(JSON.stringify(events)).not.toContain('too late');
  expect(first.fenced).toBe(true);
});

test('secrets are not stored, and a session that needs them again names them', async () => {
  const store = await STORES.sqlite();
  const hub = await startTestHub(store);
  const options = { env: { API_TOKEN: 'hunter2' }, settings: { model: 'x' } };
  const session = await hub.engine.start({ prompt: 'go', options });
  (await hub.agent()).answer('done');
  await hub.engine.stored();
  const row = await store.session(session.id);
  expect(JSON.stringify(row)).not.toContain('hunter2');
  expect(row?.secretNames).toEqual(['env.API_TOKEN', 'settings']);
  hub.kill();
  // The incarnation in between never receives the secrets.
  const between = await startTestHub(store);
  await between.engine.finder.recall(session.id);
  await between.engine.stored();
  between.kill();
  const next = await startTestHub(store);
  const reply = (more: object): Promise<unknown> =>
    next.engine.reply({ sessionId: session.id, prompt: 'go on', disk: { kind: 'open', options: more } });
  await next.engine.finder.recall(session.id);
  await expect(reply({})).rejects.toMatchObject({ message: /needs env\.API_TOKEN, settings again/ });
  await reply(options);
  expect((await next.agent()).launch.env).toMatchObject({ API_TOKEN: 'hunter2' });
});

test('what a tool was asked to do and what it did is stored at once, words a little later', async () => {
  const store = await STORES.sqlite();
  const hub = await startTestHub(store);
  const session = await hub.engine.start({ prompt: 'go', options: {} });
  const agent = await hub.agent();
  await hub.engine.stored();
  // Nothing that waits for a timer is written.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const stored = async (): Promise<string> => {
    for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve));
    return JSON.stringify((await store.events(session.id, { limit: 100 })).events);
  };
  agent.say(textEvent('some words'));
  expect(await stored()).not.toContain('some words');
  const toolUseId = 'call-1';
  const call = { kind: 'tool_call', toolUseId, toolName: 'Write', input: { file_path: 'a.txt' } } as const;
  agent.say({ kind: 'message', role: 'assistant', blocks: [call] });
  expect(await stored()).toContain('a.txt');
  const result = { kind: 'tool_result', toolUseId, output: 'File created', isError: false } as const;
  agent.say({ kind: 'message', role: 'user', blocks: [result] });
  expect(await stored()).toContain('File created');
  vi.useRealTimers();
});

test('what an earlier hub decided is looked up for Claude Code however long the store is away', async () => {
  const store = await STORES.sqlite();
  const { request } = store;
  let calls = 0;
  store.request = async (id) => {
    if (++calls < 3) throw new DomainError('UNAVAILABLE', 'the store is away');
    return request(id);
  };
  const by = { hub: 'h', incarnation: 1, fence: 1 } as never;
  const journal = new Journal({ store, by, now: () => 0, log: () => undefined, onFenced: () => undefined });
  expect(await journal.decisionOn('unknown')).toBeUndefined();
  expect(calls).toBe(3);
});

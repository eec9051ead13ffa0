import { randomUUID } from 'node:crypto';
import { appendFile, mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { StoredTranscripts } from '../../src/fleet/transcript-mirrors.ts';
import type { TranscriptMirror } from '../../src/driver/sdk-options.ts';
import { DomainError } from '../../src/errors/errors.ts';
import type { HubRef } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { partFiles, writeParts } from '../../src/transcripts/transcript-parts.ts';
import { put, session } from '../store/rows.ts';
import { STORES, temporaryDirectory } from '../store/stores.ts';

const userMessage = (uuid: string) => ({ type: 'user', uuid, message: uuid });
const title = (text: string) => ({ type: 'custom-title', text });
const away = new DomainError('UNAVAILABLE', 'Postgres is unavailable');

let store: Store;
let by: HubRef;
let cwd: string;
let configDir: string;
let file: string;
let id: string;
let mirrors: StoredTranscripts;
let mirror: TranscriptMirror;
let events: string[];

beforeEach(async () => {
  cwd = await realpath(await temporaryDirectory());
  configDir = path.join(cwd, 'config');
  id = randomUUID();
  store = await STORES.sqlite();
  const { hub, fence } = await store.acquireLease('hub-a', 15_000, {});
  by = { hub, fence };
  await store.write([put(session(id, by))], by);
  mirrors = new StoredTranscripts({ store, by, configDir, stored: async () => undefined, log: () => undefined });
  events = [];
  mirror = mirrors.open(
    { id },
    { onBroken: (reason) => events.push(`broken: ${reason}`), onWhole: () => events.push('whole') },
  );
  file = path.join(configDir, 'projects', cwd.replaceAll(/[^A-Za-z0-9]/g, '-'), `${id}.jsonl`);
  await mkdir(path.dirname(file), { recursive: true });
});

const write = (...lines: object[]): Promise<void> =>
  appendFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
const uuids = async (): Promise<(string | undefined)[]> =>
  ((await store.transcript({ sessionId: id })) ?? []).map(({ uuid }) => uuid);
const local = async (): Promise<unknown[]> =>
  (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('while a process writes', () => {
  const calls = (uuid: string, toolUseId: string) => ({
    ...{ type: 'assistant', uuid },
    message: { content: [{ type: 'tool_use', id: toolUseId }] },
  });

  test('a request for a tool call waits until the call is stored', async () => {
    const steps: string[] = [];
    const held = mirror.holds('t1').then(() => steps.push('held'));
    await mirror.append({ sessionId: id }, [userMessage('u1')]);
    await mirror.append({ sessionId: id, subpath: 'subagents/agent-a1' }, [calls('a1', 't2')]);
    steps.push('others');
    await mirror.append({ sessionId: id }, [calls('u2', 't1')]);
    await held;
    expect(steps).toEqual(['others', 'held']);
    await mirror.holds('t2');
  });

  test('a request for a tool call that is never reported waits until the current file is stored', async () => {
    await write(userMessage('u1'), userMessage('u2'));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const held = mirror.holds('t1');
    vi.advanceTimersByTime(60_000);
    await held;
    expect(await uuids()).toEqual(['u1', 'u2']);
  });

  test('the mirror is complete without the entries that Claude Code does not report', async () => {
    await write({ type: 'api-request' }, userMessage('u1'), title('A'));
    await mirror.append({ sessionId: id }, [userMessage('u1'), title('A')]);
    await mirror.settled();
    expect(events).toEqual(['whole']);
    expect(await store.transcript({ sessionId: id })).toEqual([userMessage('u1'), title('A')]);
  });

  test('entries that only the file has are stored, including a sub-agent’s', async () => {
    await write(userMessage('u1'), userMessage('u2'));
    const agent = path.join(file.slice(0, -'.jsonl'.length), 'subagents', 'agent-a1.jsonl');
    await mkdir(path.dirname(agent), { recursive: true });
    await writeFile(agent, `${JSON.stringify(userMessage('a1'))}\n{"type":"half`);
    await writeFile(agent.replace('.jsonl', '.meta.json'), '{"agentType":"Explore"}');
    await mirror.append({ sessionId: id }, [userMessage('u1')]);
    await mirror.settled();
    expect(await uuids()).toEqual(['u1', 'u2']);
    expect(await store.transcript({ sessionId: id, subpath: 'subagents/agent-a1' })).toEqual([
      userMessage('a1'),
      { type: 'agent_metadata', agentType: 'Explore' },
    ]);
    expect(events).toEqual(['whole']);
  });

  test('a mirror the SDK gave up on is rebuilt from the file, including entries without a uuid', async () => {
    await write(userMessage('u1'), title('A'), userMessage('u2'));
    await mirror.append({ sessionId: id }, [userMessage('u1')]);
    mirror.gaveUp(undefined, 'Postgres is unavailable');
    expect(events).toEqual(['broken: its transcript is not in the store: Postgres is unavailable']);
    await mirror.append({ sessionId: id }, [userMessage('u2')]);
    await mirror.settled();
    expect(events.at(-1)).toBe('whole');
    expect(await store.transcript({ sessionId: id })).toEqual([userMessage('u1'), title('A'), userMessage('u2')]);
  });

  test('a failed repair is retried until it succeeds', async () => {
    await write(userMessage('u1'));
    const { replaceTranscript } = store;
    store.replaceTranscript = () => Promise.reject(away);
    await mirror.settled();
    expect(events).toEqual(['broken: its transcript is not in the store: Postgres is unavailable']);
    store.replaceTranscript = replaceTranscript;
    await expect.poll(() => events.at(-1), { timeout: 10_000 }).toBe('whole');
    expect(await uuids()).toEqual(['u1']);
  });

  test('a hub that has lost the session writes nothing and stops retrying', async () => {
    await write(userMessage('u1'));
    await store.acquireLease(by.hub, 15_000, {});
    await expect(mirror.append({ sessionId: id }, [userMessage('u1')])).rejects.toMatchObject({ conflict: 'fenced' });
    await mirror.settled();
    expect(events).toEqual([expect.stringContaining('broken')]);
    expect(await uuids()).toEqual([]);
  });

  test('entries that arrive before the session’s row wait for it', async () => {
    id = randomUUID();
    const stored = (): Promise<void> => store.write([put(session(id, by))], by);
    const early = new StoredTranscripts({ store, by, configDir, stored, log: () => undefined });
    const nothing = { onBroken: () => undefined, onWhole: () => undefined };
    await early.open({ id }, nothing).append({ sessionId: id }, [userMessage('u1')]);
    expect(await uuids()).toEqual(['u1']);
  });
});

describe('before a session is resumed', () => {
  const fetch = (): Promise<boolean> => mirrors.fetch({ id }, cwd, () => false);
  const mirrored = (...lines: { type: string }[]): Promise<void> =>
    store.appendTranscript(by, { sessionId: id }, lines);

  test('a transcript that was never mirrored is left alone', async () => {
    await write(userMessage('u1'));
    expect(await fetch()).toBe(false);
    expect(await local()).toEqual([userMessage('u1')]);
  });

  test.each([
    ['missing', []],
    ['older', [userMessage('u1')]],
    ['older, with an unmirrored end', [userMessage('u1'), userMessage('lost')]],
  ])('a file that is %s is replaced', async (_what, lines) => {
    if (lines.length > 0) await write(...lines);
    await mirrored(title('A'), userMessage('u1'), userMessage('u2'));
    expect(await fetch()).toBe(true);
    expect(await local()).toEqual([title('A'), userMessage('u1'), userMessage('u2')]);
    expect(await fetch()).toBe(false);
  });

  test('a store that is away for a moment is asked again, and one that is given up is not', async () => {
    await mirrored(userMessage('u1'));
    const { transcript } = store;
    let calls = 0;
    store.transcript = (part) => (++calls < 3 ? Promise.reject(away) : transcript(part));
    expect(await fetch()).toBe(true);
    expect(await local()).toEqual([userMessage('u1')]);
    calls = 0;
    await expect(mirrors.fetch({ id }, cwd, () => calls === 2)).rejects.toBe(away);
    expect(calls).toBe(2);
  });

  test('a file with more entries is kept', async () => {
    await write(userMessage('u1'), { type: 'api-request' }, userMessage('u2'));
    await mirrored(userMessage('u1'));
    expect(await fetch()).toBe(false);
    expect(await local()).toHaveLength(3);
  });

  test('sub-agents are included, and none can write outside the session’s folder', async () => {
    const parts = new Map([
      [undefined, [userMessage('u1')]],
      ['subagents/agent-a1', [userMessage('a1'), { type: 'agent_metadata', agentType: 'Explore' }]],
    ]);
    await writeParts(configDir, { sessionId: id, cwd }, parts);
    expect((await partFiles(configDir, id)).map(({ subpath }) => subpath)).toEqual([undefined, 'subagents/agent-a1']);
    for (const subpath of ['../other', '/etc/passwd', 'a//b', 'a\\b'])
      await expect(writeParts(configDir, { sessionId: id, cwd }, new Map([[subpath, []]]))).rejects.toThrow();
  });
});

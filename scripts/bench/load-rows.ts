/** A hub with many clients, streams and sessions: its memory, and whether stalled readers slow down the others. */

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { StreamableHTTPClientTransport, type Client } from '@modelcontextprotocol/client';
import { connectClient } from '../../test/harness/connect-client.ts';
import { HUB_NODE_FLAGS } from '../../src/config/hub-record.ts';
import { besideScript, interleaved, median, ratio, round, timed } from './measure.ts';
import type { Row } from './row.ts';

const CLIENTS = 200;
const STREAMS = 50;
/** Those of them that never read. */
const STALLED = 10;
const WORKING = 40;
const MB = 1024 * 1024;
/** Precedes each event of a session. */
const MARK = '\nevent: event\n';

export type HubQuestion = { kind: 'work'; sessions: number } | { kind: 'report' | 'collect' | 'end' };

export interface HubReport {
  readonly rss: number;
  /** Peak resident memory. */
  readonly highest: number;
  readonly sessions: number;
}

interface Hub {
  readonly url: string;
  readonly token: string;
  readonly ids: readonly string[];
  ask(question: HubQuestion): Promise<HubReport>;
}

export async function loadRows(rounds: number): Promise<Row[]> {
  const script = besideScript('bench-hub.mjs');
  const directory = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-bench-load-'));
  const run = (...args: string[]): ChildProcess =>
    fork(script, [directory, ...args], {
      execArgv: ['--expose-gc', ...HUB_NODE_FLAGS],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  await once(run('before'), 'exit');
  const child = run();
  const hub = await started(child);
  const clients: Client[] = [];
  const streams: Stream[] = [];
  try {
    for (let index = 0; index < CLIENTS; index++)
      clients.push(await client(hub, index % 2 === 0 ? 'modern' : 'legacy'));
    for (let index = 0; index < STREAMS - STALLED; index++) streams.push(await openStream(hub));
    const stalled: Stream[] = [];
    const set = async (count: number): Promise<void> => {
      while (stalled.length > count) stalled.pop()?.socket.destroy();
      while (stalled.length < count) stalled.push(await openStream(hub, 'stalls'));
    };
    const times = await interleaved(rounds, {
      all: async () => (await set(0), oneRound(hub, clients, streams)),
      stalled: async () => (await set(STALLED), oneRound(hub, clients, streams)),
    });
    const { sessions } = await hub.ask({ kind: 'collect' });
    const { rss, highest } = await hub.ask({ kind: 'report' });
    for (const { socket } of stalled) socket.destroy();
    const over = ratio(times.stalled, times.all);
    return [
      {
        what: `hub: memory with ${CLIENTS} clients, ${STREAMS} streams and ${sessions.toLocaleString('en-US')} sessions remembered`,
        target: 'at most 200 MB resident',
        measured: `${round(highest / MB)} MB at the most, ${round(rss / MB)} MB after it`,
        reached: highest <= 200 * MB,
        numbers: { highestMb: round(highest / MB, 1), rssMb: round(rss / MB, 1) },
      },
      {
        what: `hub: a round of ${CLIENTS} calls and ${WORKING} turns with ${STALLED} of ${STREAMS} streams that do not read`,
        target: 'at most 1.15 × without them',
        measured: `${over.toFixed(2)} × (${round(median(times.stalled))} ms, without ${round(median(times.all))} ms)`,
        reached: over <= 1.15,
        numbers: { ratio: round(over, 3), ms: round(median(times.stalled), 1), withoutMs: round(median(times.all), 1) },
      },
    ];
  } finally {
    for (const { socket } of streams) socket.destroy();
    await Promise.all(clients.map((one) => one.close().catch(() => undefined)));
    const ended = once(child, 'exit');
    child.send({ kind: 'end' } satisfies HubQuestion);
    await ended;
    await rm(directory, { recursive: true, force: true });
  }
}

/** Every client polls a session while others work; ends when every stream has delivered all events. */
async function oneRound(hub: Hub, clients: readonly Client[], streams: readonly Stream[]): Promise<number> {
  return timed(async () => {
    const before = streams.map(({ events }) => events());
    const working = hub.ask({ kind: 'work', sessions: WORKING });
    await Promise.all(
      clients.map((one, index) => {
        const sessionId = hub.ids[(index * 7) % hub.ids.length];
        return one.callTool({ name: 'claude_code_check', arguments: { action: 'poll', sessionId } });
      }),
    );
    await working;
    // Each turn has at least 50 events.
    const all = (): boolean => streams.every(({ events }, index) => events() - (before[index] ?? 0) >= WORKING * 50);
    while (!all()) await new Promise((resolve) => setTimeout(resolve, 2));
  });
}

async function started(child: ChildProcess): Promise<Hub> {
  const [{ url, token, ids }] = (await once(child, 'message')) as [Pick<Hub, 'url' | 'token' | 'ids'>];
  return {
    ...{ url, token, ids },
    async ask(question) {
      const answered = once(child, 'message');
      child.send(question);
      return ((await answered) as [HubReport])[0];
    },
  };
}

function client({ url, token }: Hub, era: 'modern' | 'legacy'): Promise<Client> {
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  return connectClient(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit }), { era });
}

interface Stream {
  readonly socket: Socket;
  /** How many events were received. */
  readonly events: () => number;
}

async function openStream({ url, token }: Hub, how: 'reads' | 'stalls' = 'reads'): Promise<Stream> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  let count = 0;
  let rest = '';
  let isLive: () => void = () => undefined;
  const live = new Promise<void>((resolve) => (isLive = resolve));
  socket.on('data', (chunk: Buffer) => {
    const text = rest + chunk.toString('latin1');
    count += text.split(MARK).length - 1;
    if (text.includes('event: live')) isLive();
    // A mark may be split across two chunks.
    rest = text.slice(Math.max(text.lastIndexOf(MARK) + 1, text.length - MARK.length));
  });
  socket.on('error', () => undefined);
  socket.write(`GET /api/v1/events HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  await live;
  if (how === 'stalls') socket.pause();
  return { socket, events: () => count };
}

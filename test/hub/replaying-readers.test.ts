/** Readers that replay a large feed, and what everybody else notices of it. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { Tokens } from '../../src/hub/auth/tokens.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { builtServer } from '../harness/built-server.ts';
import { eventually } from '../harness/eventually.ts';
import { createHome } from '../harness/isolated-home.ts';
import { append, event, put, session } from '../store/rows.ts';

const SESSIONS = 5;
const EVENTS = 75;
const EVENT_BYTES = 100_000;
const READERS = 60;

/** A hub whose store holds much of one caller's data, and a token of that caller. */
async function hubWithHistory(): Promise<{ url: string; pid: number; token: string }> {
  const home = await createHome();
  const stateDir = join(home.stateDir, 'claude-code-mcp');
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const store = await openSqliteStore({ file: join(stateDir, 'hub.db'), warn: expect.fail });
  const { token, row } = await new Tokens(store).create({ name: 'ci', role: 'caller', attended: false });
  const by = await store.acquireLease('another', 1, {});
  const text = 'abcdefgh'.repeat(EVENT_BYTES / 8);
  const data = { body: { kind: 'message', role: 'assistant', blocks: [{ kind: 'text', text }] } };
  for (let count = 0; count < SESSIONS; count++) {
    const id = `s${count}`;
    await store.write([put(session(id, by, { principal: `token:${row.id}` }))], by);
    const events = Array.from({ length: EVENTS }, (_, index) => append(event(id, index + 1, { data })));
    await store.write(events, by);
  }
  await store.close();
  const hub = (...args: string[]) =>
    promisify(execFile)(process.execPath, [builtServer(), 'hub', ...args], { env: home.env(), cwd: home.project });
  onTestFinished(async () => {
    await hub('stop').catch(() => undefined);
    await home.remove();
  });
  await hub('start', '--listen', '127.0.0.1:0');
  const { url, pid } = readHubRecord(stateDir)!;
  return { url, pid, token };
}

test('while sixty readers replay a caller’s whole history, others are answered and memory stays bounded', async () => {
  const { url, pid, token } = await hubWithHistory();
  const { host, hostname, port } = new URL(url);
  const received = Array.from({ length: READERS }, () => 0);
  for (const reader of received.keys()) {
    const socket = net.connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined).on('data', (chunk) => (received[reader]! += chunk.length));
    const lines = [`host: ${host}`, `authorization: Bearer ${token}`, 'last-event-id: 1'];
    socket.write(`GET /api/v1/events HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  }
  const memory = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  const waits: number[] = [];
  await eventually(
    async () => {
      const begin = performance.now();
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      waits.push(performance.now() - begin);
      return waits.length >= 50 && received.every((bytes) => bytes > 5 * EVENT_BYTES);
    },
    { what: 'every reader gets its share of the feed', every: 20 },
  );
  const sorted = waits.toSorted((a, b) => a - b);
  // Typically 10 ms; on a busy machine, some take longer for other reasons.
  expect(sorted[sorted.length >> 1]).toBeLessThan(250);
  expect(sorted.at(-1)).toBeLessThan(2_000);
  if (process.platform === 'linux') expect(memory()).toBeLessThan(500);
}, 90_000);

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { gate, text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { standIn } from './stand-in.ts';

const HOUR_MS = 3_600_000;

/** A server whose system clock, as Node sees it, can be shifted. */
async function serverWithClock(
  env: Record<string, string> = {},
): Promise<{ h: Harness; shift(ms: number): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'clock-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const offset = join(dir, 'offset');
  const preload = join(dir, 'clock.cjs');
  await writeFile(offset, '0');
  await writeFile(
    preload,
    `const { readFileSync } = require('node:fs');
     const now = Date.now.bind(Date);
     Date.now = () => now() + Number(readFileSync(${JSON.stringify(offset)}, 'utf8') || 0);`,
  );
  const h = await startHarness({ env: { NODE_OPTIONS: `--require ${preload}`, ...env } });
  return { h, shift: (ms) => writeFile(offset, String(ms)) };
}

test('a wait ends on time and a session keeps working when the system clock is set back an hour or forward five', async () => {
  const { h, shift } = await serverWithClock({
    CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50',
    CLAUDE_CODE_MCP_SESSION_TTL_MS: '50',
  });
  const held = gate(text('done'));
  h.model.on('say it').reply(held);
  const sessionId = await h.begin('say it');
  await held.arrived;
  const begin = performance.now();
  let shifted: Promise<void> | undefined;
  const back = h.ok(...h.dialect.watch(sessionId, 1_000), { onProgress: () => void (shifted ??= shift(-HOUR_MS)) });
  expect(h.dialect.view(await back)).toMatchObject({ status: 'running' });
  expect(performance.now() - begin).toBeLessThan(10_000);
  expect(shifted).toBeDefined();
  await shifted;

  await shift(5 * HOUR_MS);
  const waiting = h.watch(sessionId);
  const { sessionId: short } = await h.ok('claude_code', { prompt: 'be short', ...standIn('ordinary') });
  await eventually(async () => (await h.call('claude_code_session', { action: 'get', sessionId: short })).isError, {
    what: 'the session at rest is forgotten',
  });
  held.release();
  expect(await waiting).toMatchObject({ status: 'rest', answer: 'done' });
});

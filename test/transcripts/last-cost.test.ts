import type { Options } from '@anthropic-ai/claude-agent-sdk';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { appendFile, mkdir } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { createTranscripts } from '../../src/transcripts/disk-sessions.ts';
import { openBench, Prompts } from '../scripted-model/cli-session.ts';
import { temporaryConfigDirectory } from './config-directory.ts';
import { registeredPid } from './registered-pid.ts';
import { costLine, promptLine, writeTranscript } from './written-transcript.ts';

test('the real Claude Code continues from the last recorded cost', async () => {
  const bench = await openBench();
  bench.model.on(/./).always(text('Done.').usage({ input_tokens: 1000, output_tokens: 500 }));
  const configDir = path.join(bench.home, '.claude');
  const { lastCostUsd } = createTranscripts({ configDir });
  const written = (id: string, cost: number): Promise<void> =>
    vi.waitFor(async () => expect(await lastCostUsd(id)).toBeCloseTo(cost, 9), { timeout: 30_000 });
  /** Kills the process after its first turn and returns the cost it reported. */
  const killAfterTurn = async (sessionId: string, options: Options): Promise<number> => {
    let cost = 0;
    await expect(async () => {
      for await (const message of bench.start(new Prompts().say('next'), options)) {
        if (message.type !== 'result') continue;
        cost = message.total_cost_usd;
        process.kill(await registeredPid(configDir, sessionId), 'SIGKILL');
      }
    }).rejects.toThrow('SIGKILL');
    return cost;
  };
  const costOf = async (options: Options): Promise<number> => (await bench.run('next', options)).result.total_cost_usd;
  const [parent, fork, killedFork] = [randomUUID(), randomUUID(), randomUUID()];

  const price = await costOf({ sessionId: parent });
  expect(price).toBeGreaterThan(0);
  await written(parent, price);

  // A resumed process continues from it. The cost of a killed one is not recorded.
  expect(await killAfterTurn(parent, { resume: parent })).toBeCloseTo(2 * price, 9);
  await written(parent, price);
  // A killed fork has no recorded cost: it starts from zero.
  await killAfterTurn(killedFork, { resume: parent, forkSession: true, sessionId: killedFork });
  expect(await lastCostUsd(killedFork)).toBe(0);
  expect(await costOf({ resume: killedFork })).toBeCloseTo(price, 9);

  // The cost of a running session is not recorded yet either. A fork made at this point continues from its parent's
  // recorded cost, and does not change it.
  const prompts = new Prompts().say('next');
  for await (const message of bench.start(prompts, { resume: parent })) {
    if (message.type !== 'result') continue;
    expect(message.total_cost_usd).toBeCloseTo(2 * price, 9);
    await written(parent, price);
    expect(await costOf({ resume: parent, forkSession: true, sessionId: fork })).toBeCloseTo(2 * price, 9);
    await written(fork, 2 * price);
    await written(parent, price);
    prompts.end();
  }
  await written(parent, 2 * price);
});

describe('the last cost is read from a transcript with', () => {
  test.each<[string, number, (sessionId: string) => string]>([
    ['no entry', 0, (id) => promptLine(id, 'hello')],
    ['several costs', 0.3, (id) => costLine(id, 0.1) + costLine(id, 0.3) + promptLine(id, 'more')],
    ['no line break at the end', 0.2, (id) => costLine(id, 0.2).trimEnd()],
    ['a truncated last line', 0.2, (id) => costLine(id, 0.2) + costLine(id, 0.4).slice(0, -9)],
    ['zero bytes left by a crash', 0.4, (id) => `${costLine(id, 0.2)}\0\0\0${costLine(id, 0.4)}`],
    ['another session', 0.2, (id) => costLine(id, 0.2) + costLine(randomUUID(), 0.9)],
    ['a cost that is not a number', 0.2, (id) => costLine(id, 0.2) + costLine(id, '0.9') + costLine(id, null)],
    ['a negative cost', 0.2, (id) => costLine(id, 0.2) + costLine(id, -1)],
    [
      'an entry inside an entry',
      0.2,
      (id) => `${costLine(id, 0.2)}{"type":"user","input":${costLine(id, 9).trim()}}\n`,
    ],
    ['an entry quoted in a prompt', 0.2, (id) => costLine(id, 0.2) + promptLine(id, costLine(id, 9))],
    ['no JSON', 0, () => '"type":"cost-state"\n<html>\n'],
  ])('%s', async (_what, cost, content) => {
    const configDir = await temporaryConfigDirectory();
    const { sessionId } = await writeTranscript(configDir, content);
    expect(await createTranscripts({ configDir }).lastCostUsd(sessionId)).toBe(cost);
  });

  test('its cost far from the end of a large file', async () => {
    const configDir = await temporaryConfigDirectory();
    const { sessionId, file } = await writeTranscript(configDir, (id) => costLine(id, 0.7));
    const image = `${JSON.stringify({ type: 'user', data: 'A'.repeat(4 * 1024 * 1024) })}\n`;
    for (let count = 0; count < 8; count++) await appendFile(file, image);
    expect(await createTranscripts({ configDir }).lastCostUsd(sessionId)).toBe(0.7);
  });

  test('no readable cost', async () => {
    const configDir = await temporaryConfigDirectory();
    const { lastCostUsd } = createTranscripts({ configDir });
    const sessionId = randomUUID();
    expect(await lastCostUsd(sessionId)).toBe(0);
    await mkdir(path.join(configDir, 'projects', '-work', `${sessionId}.jsonl`), { recursive: true });
    expect(await lastCostUsd(sessionId)).toBe(0);
    expect(await lastCostUsd('../../secret')).toBe(0);
  });
});

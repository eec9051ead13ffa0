import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { appendFile, mkdir } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { createTranscripts } from '../../src/transcripts/disk-sessions.ts';
import { openBench, Prompts, type Bench } from '../scripted-model/cli-session.ts';
import { temporaryConfigDirectory } from './config-directory.ts';
import { registeredPid } from './registered-pid.ts';
import { costLine, promptLine, writeTranscript } from './written-transcript.ts';

const TURN = text('Done.').usage({ input_tokens: 1000, output_tokens: 500 });

async function openPricedBench(): Promise<Bench & { lastCostUsd(sessionId: string): Promise<number> }> {
  const bench = await openBench();
  bench.model.on(/./).always(TURN);
  const { lastCostUsd } = createTranscripts({ configDir: path.join(bench.home, '.claude') });
  return { ...bench, lastCostUsd };
}

describe('with the real Claude Code', () => {
  test('a resumed process counts on from the last cost of its session', async () => {
    const bench = await openPricedBench();
    const sessionId = randomUUID();
    const first = await bench.run('one', { sessionId });
    const price = first.result.total_cost_usd;
    expect(price).toBeGreaterThan(0);
    expect(await bench.lastCostUsd(sessionId)).toBeCloseTo(price, 9);

    const second = await bench.run('two', { resume: sessionId });
    expect(second.result.total_cost_usd).toBeCloseTo(2 * price, 9);
    expect(await bench.lastCostUsd(sessionId)).toBeCloseTo(2 * price, 9);
  });

  test('a fork counts on from the last cost its parent wrote, and leaves that one alone', async () => {
    const bench = await openPricedBench();
    const parent = randomUUID();
    const price = (await bench.run('one', { sessionId: parent })).result.total_cost_usd;
    const fork = randomUUID();
    const forked = await bench.run('other', { resume: parent, forkSession: true, sessionId: fork });

    expect(forked.result.total_cost_usd).toBeCloseTo(2 * price, 9);
    expect(await bench.lastCostUsd(fork)).toBeCloseTo(2 * price, 9);
    expect(await bench.lastCostUsd(parent)).toBeCloseTo(price, 9);
  });

  test('the cost of a killed process is not written, and not counted on from', async () => {
    const bench = await openPricedBench();
    const sessionId = randomUUID();
    const price = (await bench.run('one', { sessionId })).result.total_cost_usd;

    const configDir = path.join(bench.home, '.claude');
    const killed = bench.start(new Prompts().say('two'), { resume: sessionId });
    await expect(async () => {
      for await (const message of killed) {
        if (message.type === 'result') process.kill(await registeredPid(configDir, sessionId), 'SIGKILL');
      }
    }).rejects.toThrow('SIGKILL');
    expect(await bench.lastCostUsd(sessionId)).toBeCloseTo(price, 9);

    const resumed = await bench.run('three', { resume: sessionId });
    expect(resumed.result.total_cost_usd).toBeCloseTo(2 * price, 9);
  });

  test('a killed fork has no cost of its own: it starts from nothing', async () => {
    const bench = await openPricedBench();
    const parent = randomUUID();
    const price = (await bench.run('one', { sessionId: parent })).result.total_cost_usd;

    const fork = randomUUID();
    const configDir = path.join(bench.home, '.claude');
    const killed = bench.start(new Prompts().say('two'), { resume: parent, forkSession: true, sessionId: fork });
    await expect(async () => {
      for await (const message of killed) {
        if (message.type === 'result') process.kill(await registeredPid(configDir, fork), 'SIGKILL');
      }
    }).rejects.toThrow('SIGKILL');

    expect(await bench.lastCostUsd(fork)).toBe(0);
    expect((await bench.run('three', { resume: fork })).result.total_cost_usd).toBeCloseTo(price, 9);
  });

  test('a fork of a running session counts on from what is written, not from what is spent', async () => {
    const bench = await openPricedBench();
    const parent = randomUUID();
    const price = (await bench.run('one', { sessionId: parent })).result.total_cost_usd;
    const prompts = new Prompts().say('two');
    for await (const message of bench.start(prompts, { resume: parent })) {
      if (message.type !== 'result') continue;
      expect(message.total_cost_usd).toBeCloseTo(2 * price, 9);
      expect(await bench.lastCostUsd(parent)).toBeCloseTo(price, 9);
      const forked = await bench.run('other', { resume: parent, forkSession: true });
      expect(forked.result.total_cost_usd).toBeCloseTo(2 * price, 9);
      prompts.end();
    }
    await vi.waitFor(async () => expect(await bench.lastCostUsd(parent)).toBeCloseTo(2 * price, 9));
  });
});

describe('in transcripts of any kind', () => {
  test.each<[string, number, (sessionId: string) => string]>([
    ['no entry', 0, (id) => promptLine(id, 'hello')],
    ['the last of several', 0.3, (id) => costLine(id, 0.1) + costLine(id, 0.3) + promptLine(id, 'more')],
    ['no line break at the end', 0.2, (id) => costLine(id, 0.2).trimEnd()],
    ['a last line that was cut', 0.2, (id) => costLine(id, 0.2) + costLine(id, 0.4).slice(0, -9)],
    ['zeros that a crash left', 0.4, (id) => `${costLine(id, 0.2)}\0\0\0${costLine(id, 0.4)}`],
    ['another session', 0.2, (id) => costLine(id, 0.2) + costLine(randomUUID(), 0.9)],
    ['a cost that is no number', 0.2, (id) => costLine(id, 0.2) + costLine(id, '0.9') + costLine(id, null)],
    ['a cost below zero', 0.2, (id) => costLine(id, 0.2) + costLine(id, -1)],
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

  test('far from the end of a large file', async () => {
    const configDir = await temporaryConfigDirectory();
    const { sessionId, file } = await writeTranscript(configDir, (id) => costLine(id, 0.7));
    const image = `${JSON.stringify({ type: 'user', data: 'A'.repeat(4 * 1024 * 1024) })}\n`;
    for (let count = 0; count < 8; count++) await appendFile(file, image);
    expect(await createTranscripts({ configDir }).lastCostUsd(sessionId)).toBe(0.7);
  });

  test('none that can be read', async () => {
    const configDir = await temporaryConfigDirectory();
    const { lastCostUsd } = createTranscripts({ configDir });
    const sessionId = randomUUID();
    expect(await lastCostUsd(sessionId)).toBe(0);
    await mkdir(path.join(configDir, 'projects', '-work', `${sessionId}.jsonl`), { recursive: true });
    expect(await lastCostUsd(sessionId)).toBe(0);
    expect(await lastCostUsd('../../secret')).toBe(0);
  });
});

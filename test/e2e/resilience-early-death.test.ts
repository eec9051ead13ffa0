import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gate, text } from '../../src/scripted-model/reply.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { killClaude } from './claude-process.ts';

const shared = shareHarness();

/** A session whose process was killed before it had an answer to its first prompt. */
async function killedAtFirstRequest(h: Harness): Promise<string> {
  const first = gate(text('too late'));
  h.model.on('the first words').reply(first);
  const { sessionId } = await h.ok('claude_code', { prompt: 'the first words', cwd: h.project });
  await first.arrived;
  await killClaude(h, sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'error', result: { isError: true } });
  return sessionId;
}

async function expectReplyTaken(h: Harness, sessionId: string): Promise<void> {
  const next = h.model.on('the next words').reply('here again');
  await h.ok('claude_code_reply', { sessionId, prompt: 'the next words' });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'here again' } });
  expect(h.model.requestsFor(next)[0]?.userTexts.join('\n')).toContain('the first words');
}

test('a session killed at its very first request takes a reply, whether or not anything was written', async () => {
  const h = shared();
  const sessionId = await killedAtFirstRequest(h);
  await expectReplyTaken(h, sessionId);
});

test('a session killed while its transcript was begun takes a reply', async () => {
  const h = shared();
  const sessionId = await killedAtFirstRequest(h);
  // As far as Claude Code may have come: no message is whole, and the file is there.
  const projects = join(h.configDir, 'projects');
  const [project] = readdirSync(projects);
  const begun = `${JSON.stringify({ type: 'queue-operation', operation: 'enqueue', sessionId })}\n{"type":"user","mess`;
  writeFileSync(join(projects, project!, `${sessionId}.jsonl`), begun);
  await expectReplyTaken(h, sessionId);
});

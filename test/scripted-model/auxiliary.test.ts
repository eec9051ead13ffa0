import { expect, test } from 'vitest';
import { tool } from '../../src/scripted-model/reply.ts';
import type { ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { collect, openBench, Prompts } from './cli-session.ts';

const TALKATIVE = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined };

const auxiliaryPurposes = (model: ScriptedModel): string[] =>
  model.requests.filter(({ auxiliary }) => auxiliary).map(({ purpose }) => purpose);

test('title and auto-mode permission requests use up no script, but are charged', async () => {
  const { model, converse } = await openBench();
  const { say } = converse({ permissionMode: 'auto', env: TALKATIVE });
  const script = model.on('fix the parser').reply('Fixed.');

  const fixed = await say('fix the parser');

  expect(fixed.result).toMatchObject({ result: 'Fixed.' });
  expect(auxiliaryPurposes(model)).toEqual(['title']);
  expect(model.chargedUsd()).toBeCloseTo(fixed.result.total_cost_usd, 10);
  expect(model.chargedUsd(script)).toBeCloseTo(fixed.result.total_cost_usd / 2, 10);

  const push = tool('Bash', { command: 'git push --force origin main' });
  const allowed = model.on('push').reply(push, 'Done.');
  const pushed = await say('push');

  expect(auxiliaryPurposes(model)).toContain('permission-check');
  expect(pushed.result.permission_denials).toEqual([]);
  expect(allowed.remaining).toBe(0);

  model.onAuxiliary('permission-check').always('<block>yes</block><reason>scripted</reason>');
  const denied = model.on('once more').reply(push, 'Done.');
  const refused = await say('once more');

  expect(refused.result.permission_denials).toHaveLength(1);
  expect(denied.remaining).toBe(0);
  model.assertAllExpected();
});

test('suggestions, token counts and a compaction use up no script', async () => {
  const { model, start } = await openBench();
  model.on('one').reply('Said one.');
  model.on('two').reply('Said two.').always('Remembered two.');
  const prompts = new Prompts().say('one');
  const session = start(prompts, { promptSuggestions: true });
  const next = ['two', '/compact', 'and then?'];

  const { messages, result } = await collect(session, (message) => {
    if (message.type !== 'result') return;
    const prompt = next.shift();
    if (prompt !== undefined) prompts.say(prompt);
    else void session.getContextUsage().finally(() => prompts.end());
  });

  // The compaction's summary repeats the prompts, so the script for one of them still matches.
  expect(result).toMatchObject({ result: 'Remembered two.' });
  expect(messages).toContainEqual(expect.objectContaining({ subtype: 'compact_boundary' }));
  expect(new Set(auxiliaryPurposes(model))).toEqual(new Set(['suggestion', 'compaction', 'token-count']));
  model.assertAllExpected();
});

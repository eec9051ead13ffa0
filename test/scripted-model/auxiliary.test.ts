import { expect, test } from 'vitest';
import { tool } from '../../src/scripted-model/reply.ts';
import type { ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { collect, openBench, Prompts } from './cli-session.ts';

const TALKATIVE = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined };

const auxiliaryPurposes = (model: ScriptedModel): string[] =>
  model.requests.filter(({ auxiliary }) => auxiliary).map(({ purpose }) => purpose);

test('a title is made without using up the script, and is charged', async () => {
  const { model, run } = await openBench();
  const script = model.on('fix the parser').reply('Fixed.');

  const { result } = await run('fix the parser', { env: TALKATIVE });

  expect(result).toMatchObject({ result: 'Fixed.' });
  expect(auxiliaryPurposes(model)).toEqual(['title']);
  expect(model.chargedUsd()).toBeCloseTo(result.total_cost_usd, 10);
  expect(model.chargedUsd(script)).toBeCloseTo(result.total_cost_usd / 2, 10);
  model.assertAllExpected();
});

test.each([
  ['is allowed', undefined, 0],
  ['is denied by a script', '<block>yes</block><reason>scripted</reason>', 1],
])('what auto mode asks about a command %s', async (_, verdict, denials) => {
  const { model, run } = await openBench();
  const script = model.on('push').reply(tool('Bash', { command: 'git push --force origin main' }), 'Done.');
  if (verdict !== undefined) model.onAuxiliary('permission-check').always(verdict);

  const { result } = await run('push', { permissionMode: 'auto', env: TALKATIVE });

  expect(auxiliaryPurposes(model)).toContain('permission-check');
  expect(result.permission_denials).toHaveLength(denials);
  expect(script.remaining).toBe(0);
});

test('suggestions, token counts and a compaction leave the scripts alone', async () => {
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

  // The summary of the compaction repeats the prompts, so the script of one still matches.
  expect(result).toMatchObject({ result: 'Remembered two.' });
  expect(messages).toContainEqual(expect.objectContaining({ subtype: 'compact_boundary' }));
  expect(new Set(auxiliaryPurposes(model))).toEqual(new Set(['suggestion', 'compaction', 'token-count']));
  model.assertAllExpected();
});

import { describe, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { openBench } from './cli-session.ts';

const TOKENS_OF_EVERY_KIND = {
  input_tokens: 1_234,
  output_tokens: 567,
  cache_read_input_tokens: 8_901,
  cache_creation_input_tokens: 2_345,
};

describe('what is charged equals the cost that the CLI reports', () => {
  test.each([
    ['the default model', undefined],
    ['opus', 'opus'],
    ['sonnet', 'sonnet'],
    ['haiku', 'haiku'],
  ])('for %s', async (_, modelName) => {
    const { model, run } = await openBench();
    model
      .on('charge me')
      .reply(
        tool('Bash', { command: 'true' }),
        text('Charged.').usage(TOKENS_OF_EVERY_KIND).model('claude-named-otherwise'),
      );

    const { result } = await run('charge me', modelName === undefined ? {} : { model: modelName });

    expect(result.total_cost_usd).toBeGreaterThan(0);
    expect(model.chargedUsd()).toBeCloseTo(result.total_cost_usd, 10);
  });

  test('for a long prompt to haiku, which costs more', async () => {
    const { model, run } = await openBench();
    model.on('charge me').reply(text('Charged.').usage({ ...TOKENS_OF_EVERY_KIND, cache_read_input_tokens: 100_000 }));

    const { result } = await run('charge me', { model: 'haiku' });

    expect(model.chargedUsd()).toBeCloseTo(result.total_cost_usd, 10);
  });
});

import { describe, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareConversation } from './cli-session.ts';

const TOKENS_OF_EVERY_KIND = {
  input_tokens: 1_234,
  output_tokens: 567,
  cache_read_input_tokens: 8_901,
  cache_creation_input_tokens: 2_345,
};

// Both sides count a session's cost as the sum of its turns.
describe('the charged cost equals the cost that the CLI reports', () => {
  const conversation = shareConversation();

  test.each([
    ['the default model', undefined],
    ['opus', 'opus'],
    ['sonnet', 'sonnet'],
    ['haiku', 'haiku'],
  ])('for %s', async (what, modelName) => {
    const { model, session, say } = conversation();
    const before = model.chargedUsd();
    await session.setModel(modelName);
    const script = model
      .on(`charge ${what}`)
      .reply(
        tool('Bash', { command: 'true' }),
        text('Charged.').usage(TOKENS_OF_EVERY_KIND).model('claude-named-otherwise'),
      );

    const { result } = await say(`charge ${what}`);

    expect(model.requestsFor(script)[0]?.model).toContain(modelName ?? 'claude-');
    expect(model.chargedUsd()).toBeGreaterThan(before);
    expect(model.chargedUsd()).toBeCloseTo(result.total_cost_usd, 10);
  });

  test('for a long prompt to haiku, which costs more', async () => {
    const { model, session, say } = conversation();
    await session.setModel('haiku');
    const long = { ...TOKENS_OF_EVERY_KIND, cache_read_input_tokens: 100_000 };
    model.on('charge much').reply(text('Charged.').usage(long));

    const { result } = await say('charge much');

    expect(model.chargedUsd()).toBeCloseTo(result.total_cost_usd, 10);
  });
});

/** What the embedded model answers. The tools it calls are Claude Code's own, and really run. */

import path from 'node:path';
import { text, tool, type MessageReply } from '../../scripted-model/reply.ts';
import type { ScriptedModel } from '../../scripted-model/scripted-model.ts';
import { BUG, FIX } from './broken-shop.ts';

export const PROMPT =
  'The test of this shop fails. Find the bug and fix it, then run the test. ' +
  'Before you edit, ask me (AskUserQuestion) whether I want a test for eleven articles too.';

export const TEST_COMMAND = 'node --test';

const QUESTION = {
  question: 'Shall I add a test for eleven articles too?',
  header: 'Test',
  multiSelect: false,
  options: [
    { label: 'Yes', description: 'One more test, right beside the boundary' },
    { label: 'No', description: 'Only the fix' },
  ],
};

const LAST_TEST = 'quantity: 10 }]), 900));\n';
const NEW_TEST = `test('so are eleven', () => assert.equal(total([{ price: 100, quantity: 11 }]), 990));\n`;

/** Pauses so that people can follow; none when nobody is watching. */
export function scriptDemo(model: ScriptedModel, project: string, paceMs: number): void {
  const program = path.join(project, 'cart.mjs');
  const tests = path.join(project, 'cart.test.mjs');
  const steps: MessageReply[] = [
    text('I will look at the program and see the test fail.')
      .tool('Read', { file_path: program })
      .tool('Read', { file_path: tests })
      .tool('Bash', { command: TEST_COMMAND, description: 'Run the test' }),
    text('Ten articles get no discount: the comparison leaves the boundary out.').tool('AskUserQuestion', {
      questions: [QUESTION],
    }),
    tool('Edit', { file_path: program, old_string: BUG, new_string: FIX }),
    tool('Edit', { file_path: tests, old_string: LAST_TEST, new_string: LAST_TEST + NEW_TEST }),
    tool('Bash', { command: TEST_COMMAND, description: 'Run the test again' }),
    text('Fixed: ten articles now get the discount. All four tests pass.'),
  ];
  const usage = { input_tokens: 2_400, output_tokens: 180, cache_read_input_tokens: 14_000 };
  model.on(PROMPT).reply(...steps.map((step) => step.usage(usage).delay(paceMs)));
}

/** What the model answers in the demo of the dashboard: three sessions that work for minutes, and one that soon asks. */

import path from 'node:path';
import { text, tool, type MessageReply } from '../../../scripted-model/reply.ts';
import type { ScriptedModel } from '../../../scripted-model/scripted-model.ts';
import type { StartBody } from '../../../schema/api.ts';
import { BUG, FIX, TEST_COMMAND } from '../demo-script.ts';

const USAGE = { input_tokens: 2_400, output_tokens: 180, cache_read_input_tokens: 14_000 };
/** How often a working session repeats its round: about ten minutes at the usual pace. */
const ROUNDS = 60;

type Start = Pick<StartBody, 'prompt' | 'title' | 'permissionMode' | 'workspace' | 'allowedTools'>;

interface Part {
  readonly start: Start;
  readonly steps: readonly MessageReply[];
}

export function dashboardScript(model: ScriptedModel, shop: string, paceMs: number): Start[] {
  return parts(shop).map(({ start, steps }) => {
    model.on(start.prompt).reply(...steps.map((step) => step.usage(USAGE).delay(paceMs)));
    return start;
  });
}

function parts(shop: string): Part[] {
  const program = path.join(shop, 'cart.mjs');
  const tests = path.join(shop, 'cart.test.mjs');
  return [
    {
      start: {
        title: 'Fix the discount',
        prompt: 'Ten items get no discount. Find the bug, fix it and run the test.',
      },
      steps: [
        text('I will look at the program and its test first.')
          .tool('Read', { file_path: program })
          .tool('Read', { file_path: tests }),
        text('The comparison is off by one: **ten** items should be ten per cent cheaper too.').tool('Edit', {
          file_path: program,
          old_string: `    const discount = ${BUG} ? 0.1 : 0;`,
          new_string: `    const discount = ${FIX} ? 0.1 : 0;`,
        }),
        tool('Bash', { command: TEST_COMMAND, description: 'Run the test' }),
        text('Fixed: ten items now get the discount, and all tests pass.'),
      ],
    },
    {
      start: {
        title: 'Write a guide for contributors',
        prompt: 'Write CONTRIBUTING.md, a short guide for new contributors.',
        permissionMode: 'acceptEdits',
        workspace: { type: 'worktree' },
      },
      steps: rounds((round) => [
        text(round === 1 ? 'I will start with what the project is.' : `Next is section ${round}.`).tool('Write', {
          file_path: 'CONTRIBUTING.md',
          content: guide(round),
        }),
        tool('Bash', { command: 'git status --short', description: 'See what changed' }),
      ]),
    },
    {
      start: {
        title: 'Review the error handling',
        prompt: 'Review how this shop handles invalid input. Change nothing.',
      },
      steps: rounds((round) => [
        text(
          round === 1
            ? 'I will read everything twice, once for each kind of invalid input:\n\n- prices that are not numbers\n- quantities below zero'
            : `Round ${round}: the other callers.`,
        ).tool('Read', { file_path: program }),
        tool('Bash', { command: `grep -n quantity ${path.basename(program)}`, description: 'Find who reads it' }),
      ]),
    },
    {
      start: { title: 'Measure startup', prompt: 'Measure how long the program takes to load, again and again.' },
      steps: rounds(() => [
        tool('Read', { file_path: tests }),
        text('Within the usual range.').tool('Bash', { command: 'ls -l', description: 'See what there is to load' }),
      ]),
    },
  ];
}

function rounds(steps: (round: number) => MessageReply[]): MessageReply[] {
  const all = Array.from({ length: ROUNDS }, (_, index) => steps(index + 1)).flat();
  return [...all, text('Done.')];
}

function guide(sections: number): string {
  const titles = ['What this is', 'Run the tests', 'Send a change', 'Where to ask'];
  const shown = Array.from({ length: sections }, (_, index) => titles[index] ?? `Note ${index + 1}`);
  return `# Contributing\n${shown.map((title) => `\n## ${title}\n\nSoon.\n`).join('')}`;
}

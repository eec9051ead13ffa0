/** What the embedded model answers. The tools it calls are Claude Code's own, and really run. */

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text, tool, type MessageReply } from '../../scripted-model/reply.ts';
import type { ScriptedModel } from '../../scripted-model/scripted-model.ts';

/** What is wrong with the small program in the demo's repository; a test finds it. */
export const BUG = 'quantity > 10';
export const FIX = 'quantity >= 10';

const PROGRAM = `/** What a cart costs, in cents. Ten or more of an item are ten per cent cheaper. */
export function total(cart) {
  return cart.reduce((sum, { price, quantity }) => {
    const discount = ${BUG} ? 0.1 : 0;
    return sum + Math.round(price * quantity * (1 - discount));
  }, 0);
}
`;

const test = (program: string): string => `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { total } from '${program}';

test('an empty cart costs nothing', () => assert.equal(total([]), 0));
test('nine cost the full price', () => assert.equal(total([{ price: 100, quantity: 9 }]), 900));
test('ten are ten per cent cheaper', () => assert.equal(total([{ price: 100, quantity: 10 }]), 900));
`;

export interface TestRun {
  readonly passed: boolean;
  readonly output: string;
}

export class BrokenShop {
  readonly directory: string;
  readonly #proof: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(root: string, env: Readonly<Record<string, string>>) {
    this.directory = path.join(root, 'shop');
    this.#proof = path.join(root, 'proof', 'cart.test.mjs');
    this.#env = env;
  }

  async create(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
    await mkdir(path.dirname(this.#proof), { recursive: true });
    await writeFile(path.join(this.directory, 'cart.mjs'), PROGRAM);
    await writeFile(path.join(this.directory, 'cart.test.mjs'), test('./cart.mjs'));
    // Out of Claude's reach: a test that was edited until it passed proves nothing.
    await writeFile(this.#proof, test('../shop/cart.mjs'));
    await this.#git('init', '--quiet');
    await this.#git('add', '.');
    const author = ['-c', 'user.name=Demo', '-c', 'user.email=demo@example.invalid', '-c', 'commit.gpgsign=false'];
    await this.#git(...author, 'commit', '--quiet', '--no-verify', '--message', 'feat: carts with a discount');
  }

  /** The test as it was written, against the program as it is now. */
  async prove(): Promise<TestRun> {
    const { code, output } = await this.#run(process.execPath, ['--test', '--test-reporter=spec', this.#proof]);
    return { passed: code === 0, output };
  }

  async diff(): Promise<string> {
    return this.#git('--no-pager', 'diff', '--no-color', '--no-ext-diff');
  }

  async #git(...args: string[]): Promise<string> {
    const { code, output } = await this.#run('git', args);
    if (code !== 0) throw new Error(`git ${args.join(' ')} failed: ${output.trim()}`);
    return output;
  }

  #run(file: string, args: readonly string[]): Promise<{ code: number; output: string }> {
    return new Promise((resolve, reject) => {
      execFile(file, args, { cwd: this.directory, env: this.#env, windowsHide: true }, (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== 'number') {
          reject(error.code === 'ENOENT' ? new Error(`${file} was not found; the demo needs Node and git.`) : error);
        } else resolve({ code: Number(error?.code ?? 0), output: stdout + stderr });
      });
    });
  }
}

export const PROMPT =
  'The test of this shop fails. Find the bug and fix it, then run the test. ' +
  'Before you edit, ask me (AskUserQuestion) whether I want a test for eleven items too.';

export const TEST_COMMAND = 'node --test';

const QUESTION = {
  question: 'Shall I add a test for eleven items too?',
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
    text('Ten items get no discount: the comparison leaves the boundary out.').tool('AskUserQuestion', {
      questions: [QUESTION],
    }),
    tool('Edit', { file_path: program, old_string: BUG, new_string: FIX }),
    tool('Edit', { file_path: tests, old_string: LAST_TEST, new_string: LAST_TEST + NEW_TEST }),
    tool('Bash', { command: TEST_COMMAND, description: 'Run the test again' }),
    text('Fixed: ten items now get the discount. All four tests pass.'),
  ];
  const usage = { input_tokens: 2_400, output_tokens: 180, cache_read_input_tokens: 14_000 };
  model.on(PROMPT).reply(...steps.map((step) => step.usage(usage).delay(paceMs)));
}

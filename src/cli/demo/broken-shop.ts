/** A git repository with a small program, a bug in it, and a test that finds the bug. */

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

export const BUG = 'quantity > 10';
export const FIX = 'quantity >= 10';

const PROGRAM = `/** What a cart costs, in cents. Ten or more of an article are ten per cent cheaper. */
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

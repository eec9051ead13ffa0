import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { PROMPT, type scriptDemo } from '../../src/cli/demo/demo-script.ts';
import { runDemo, type DemoContext } from '../../src/cli/demo/run-demo.ts';
import { httpError, text, tool } from '../../src/scripted-model/reply.ts';
import { builtServer } from '../harness/built-server.ts';
import { eventually } from '../harness/eventually.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { captureTerminal } from './captured-terminal.ts';
import { runCommand } from './run-command.ts';

const WITHIN_MS = 60_000;

let place: IsolatedHome;
let temporary: string;

beforeEach(async () => {
  const buildFailure = inject('buildFailure');
  if (buildFailure !== undefined) throw new Error(`No build: ${buildFailure}`);
  place = await createHome();
  temporary = place.env()['TMPDIR']!;
});
afterEach(() => place.remove());

/** The demo's processes live in directories of the demo's own. */
function running(inside: string): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(inside);
    } catch {
      return false;
    }
  });
}

async function expectNothingLeft(): Promise<void> {
  expect(readdirSync(temporary)).toEqual([]);
  await eventually(() => running(`${temporary}/ccm-`).length === 0, { what: 'no process of the demo is left' });
}

test(
  'fixes the bug and shows it all as plain text',
  async () => {
    const { code, stdout, stderr } = await runCommand(['demo'], { env: place.env() });
    expect(stderr).toBe('');
    expect(stdout).toContain('Claude asks for permission: Bash');
    expect(stdout).toContain('Claude asks: Shall I add a test for eleven articles too?');
    expect(stdout).toContain('-    const discount = quantity > 10 ? 0.1 : 0;');
    expect(stdout).toContain('+    const discount = quantity >= 10 ? 0.1 : 0;');
    expect(stdout).toMatch(/\d+ turns, \$\d+\.\d{4} .*, \d+\.\d s in all/);
    expect(stdout).toContain('the bug is really fixed');
    expect(stdout).not.toContain('\u001b');
    expect(code).toBe(0);
    await expectNothingLeft();
  },
  WITHIN_MS,
);

const play = (part: Pick<DemoContext, 'terminal'> & Partial<DemoContext>): Promise<number> =>
  runDemo([], {
    program: builtServer(),
    version: '0.0.0',
    env: place.env(),
    temporaryDir: temporary,
    settings: { executable: undefined, gitBashPath: undefined },
    signal: new AbortController().signal,
    ...part,
  });

const talk: typeof scriptDemo = (model) => void model.on(PROMPT).reply(text('Fixed, all tests pass.'));

/** Bends the test instead of fixing the program. */
const cheat: typeof scriptDemo = (model, project) =>
  void model.on(PROMPT).reply(
    tool('Read', { file_path: path.join(project, 'cart.test.mjs') }),
    tool('Edit', {
      file_path: path.join(project, 'cart.test.mjs'),
      old_string: '10 }]), 900',
      new_string: '10 }]), 1000',
    }),
    text('Fixed, all tests pass.'),
  );

const broken: typeof scriptDemo = (model) => void model.on(PROMPT).always(httpError(400));

test.each([
  { what: 'a model that only says so', script: talk, says: 'No file was changed.' },
  { what: 'a model that bends the test', script: cheat, says: '✖ ten are ten per cent cheaper' },
  { what: 'a model that fails', script: broken, says: 'the bug is not fixed' },
])(
  'is not fooled by $what',
  async ({ script, says }) => {
    const terminal = captureTerminal();
    const code = await play({ terminal, script });
    expect(terminal.text).toContain('The test still fails');
    expect(terminal.text).toContain(says);
    expect(code).toBe(1);
    await expectNothingLeft();
  },
  WITHIN_MS,
);

test(
  'leaves nothing behind when it is interrupted',
  async () => {
    const controller = new AbortController();
    const terminal = captureTerminal();
    const write = (written: string): void => {
      terminal.write(written);
      if (written.includes('asks for permission')) controller.abort();
    };
    const code = await play({ terminal: { ...terminal, write }, signal: controller.signal });
    expect(terminal.text).not.toContain('in all');
    expect(code).toBe(130);
    await expectNothingLeft();
  },
  WITHIN_MS,
);

test.each([
  { args: ['--fast'], says: "Unknown option '--fast'" },
  { args: ['--live'], says: 'add --yes' },
])('demo $args is bad usage', async ({ args, says }) => {
  const { code, stdout } = await runCommand(['demo', ...args], { env: place.env() });
  expect(stdout).toContain(says);
  expect(code).toBe(2);
});

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { PROMPT, type scriptDemo } from '../../src/cli/demo/demo-script.ts';
import { runDemo, type DemoContext } from '../../src/cli/demo/run-demo.ts';
import { httpError, text, tool, type ReplyLike } from '../../src/scripted-model/reply.ts';
import { startScriptedModel } from '../../src/scripted-model/scripted-model.ts';
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

/** Everything the demo starts has this test's directories in its environment. */
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
  // Claude Code itself leaves empty directories in the user's temporary directory.
  expect(readdirSync(temporary).filter((name) => name.startsWith('ccm-'))).toEqual([]);
  await eventually(() => running(path.dirname(place.home)).length === 0, { what: 'no process of the demo is left' });
}

test(
  'fixes the bug and reports it as plain text',
  async () => {
    const { code, stdout, stderr } = await runCommand(['demo'], { env: place.env() });
    expect(stderr).toBe('');
    expect(stdout).toContain('Claude asks for permission: Bash');
    expect(stdout).toContain('Claude asks: Shall I add a test for eleven items too?');
    expect(stdout).toContain('-    const discount = quantity > 10 ? 0.1 : 0;');
    expect(stdout).toContain('+    const discount = quantity >= 10 ? 0.1 : 0;');
    expect(stdout).toMatch(/\d+ turns, \$\d+\.\d{4} .*, \d+\.\d s in total/);
    expect(stdout).toContain('the bug is really fixed');
    expect(stdout).not.toContain('\u001b');
    // The README shows some of it.
    const readme = readFileSync(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
    const [, shown = ''] = /```text\n\$ claude-code-mcp demo\n([^]*?)```/.exec(readme) ?? [];
    const lines = shown.split('\n').map((line) => line.replace(/ ?…$/, ''));
    expect(lines.length).toBeGreaterThan(8);
    expect(lines.filter((line) => !stdout.includes(line))).toEqual([]);
    expect(code).toBe(0);
    await expectNothingLeft();
  },
  WITHIN_MS,
);

const play = (
  part: Pick<DemoContext, 'terminal'> & Partial<DemoContext>,
  args: readonly string[] = [],
): Promise<number> =>
  runDemo(args, {
    program: builtServer(),
    version: '0.0.0',
    env: place.env(),
    temporaryDir: temporary,
    settings: { executable: undefined, gitBashPath: undefined },
    signal: new AbortController().signal,
    ...part,
  });

test(
  'reports that the bug is not fixed when the model fails',
  async () => {
    const terminal = captureTerminal();
    const script: typeof scriptDemo = (model) => void model.on(PROMPT).always(httpError(400));
    const code = await play({ terminal, script });
    expect(terminal.text).toContain('No file was changed.');
    expect(terminal.text).toContain('✗ The session failed: API Error');
    expect(terminal.text).toContain('The test still fails: the bug is not fixed.');
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
    expect(terminal.text).not.toContain('in total');
    expect(code).toBe(130);
    await expectNothingLeft();
  },
  WITHIN_MS,
);

test(
  'serves the dashboard until Ctrl-C: the link signs in, three sessions work, one asks and screenshots can be taken; then leaves nothing behind',
  async () => {
    const isWindows = process.platform === 'win32';
    const runScript = (...args: string[]): Promise<{ stdout: string }> =>
      promisify(execFile)(process.execPath, [path.resolve(import.meta.dirname, '../../scripts/run.mjs'), ...args]);
    // The link is valid for two minutes, so build the scripts first.
    await runScript('record-session', '--check');
    const demo = spawn(process.execPath, [builtServer(), 'demo', '--dashboard'], {
      env: place.env(),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: !isWindows,
    });
    let output = '';
    demo.stdout.setEncoding('utf8').on('data', (piece: string) => (output += piece));
    demo.stderr.setEncoding('utf8').on('data', (piece: string) => (output += piece));
    const ended = once(demo, 'exit');
    onTestFinished(() => void demo.kill('SIGKILL'));
    const [, link = '', hub = ''] = await eventually(() => /((http:\S+)#code=\S+)/.exec(output), {
      within: WITHIN_MS,
      what: 'the demo prints its link',
    });
    const [token = ''] = await eventually(() => /ccmcp_[\w-]{43}/.exec(output), { what: 'the demo prints a token' });
    const headers = { authorization: `Bearer ${token}` };
    const statuses = async (): Promise<string[]> => {
      const answer = await fetch(new URL('api/v1/sessions', hub), { headers });
      const { sessions } = (await answer.json()) as { sessions: { status: string }[] };
      return sessions.map(({ status }) => status).sort();
    };
    await eventually(async () => String(await statuses()) === 'running,running,running,waiting_permission', {
      within: WITHIN_MS,
      what: 'three sessions work and one waits',
    });
    // In a browser, which signs in with the link and with the token.
    const taken = await runScript('screenshots', '--check', link, token);
    expect(taken.stdout.match(/dashboard-\w+\.png/g)).toHaveLength(3);
    // Like a terminal: to the whole foreground process group.
    process.kill(isWindows ? demo.pid! : -demo.pid!, 'SIGINT');
    expect(await ended).toEqual([0, null]);
    expect(output).not.toContain('✗');
    await expectNothingLeft();
  },
  2 * WITHIN_MS,
);

test(
  'a demo of the dashboard that is killed leaves no process: its hub notices and ends',
  async () => {
    const demo = spawn(process.execPath, [builtServer(), 'demo', '--dashboard'], { env: place.env(), stdio: 'pipe' });
    onTestFinished(() => void demo.kill('SIGKILL'));
    let output = '';
    demo.stdout.setEncoding('utf8').on('data', (piece: string) => (output += piece));
    await eventually(() => output.includes('#code='), { within: WITHIN_MS, what: 'the demo prints its link' });
    demo.kill('SIGKILL');
    await eventually(() => running(path.dirname(place.home)).length === 0, { what: 'no process of the demo is left' });
  },
  WITHIN_MS,
);

describe('live', () => {
  /** Stands in for the user's own model, which does not know where the project is. */
  async function ownModel(...replies: ReplyLike[]): Promise<Record<string, string>> {
    const model = await startScriptedModel();
    onTestFinished(() => model.close());
    model.on(PROMPT).reply(...replies, text('Fixed, all tests pass.'));
    return { ...place.env(), ...model.env() };
  }

  /** A question with choices, which the user may also answer in their own words. */
  function ask(...questions: string[]): ReplyLike {
    const options = [
      { label: 'Yes', description: '' },
      { label: 'No', description: '' },
    ];
    return tool('AskUserQuestion', {
      questions: questions.map((question) => ({ question, header: 'Test', multiSelect: false, options })),
    });
  }

  function rewrite(file: string, from: string, to: string): ReplyLike {
    const command = `node -e "fs.writeFileSync('${file}', fs.readFileSync('${file}', 'utf8').replace('${from}', '${to}'))"`;
    return tool('Bash', { command, description: `Change ${file}` });
  }

  test(
    'the user answers in the terminal by number or in words, denies and allows; a model that only edits the test has not fixed the bug',
    async () => {
      const env = await ownModel(
        ask('One more test?', 'Which one?'),
        rewrite('cart.mjs', '> 10', '>= 10'),
        rewrite('cart.test.mjs', '10 }]), 900', '10 }]), 1000'),
      );
      const terminal = captureTerminal(['2', 'both, please', 'no', 'y']);
      const code = await play({ terminal, env }, ['--live']);
      const [choice, permission] = [expect.stringContaining('Your choice'), expect.stringContaining('Allow it?')];
      expect(terminal.asked).toEqual([choice, choice, permission, permission]);
      expect(terminal.text).toContain('✓ No, both, please');
      expect(terminal.text).toContain('✗ denied');
      expect(terminal.text).toContain('✓ allowed');
      // The program is unchanged, whatever the model says.
      const changed = [...terminal.text.matchAll(/\+\+\+ b\/(\S+)/g)].map(([, file]) => file);
      expect(changed).toEqual(['cart.test.mjs']);
      expect(terminal.text).toContain('The test still fails');
      expect(terminal.text).toContain('✖ ten are ten per cent cheaper');
      expect(code).toBe(1);
      await expectNothingLeft();
    },
    WITHIN_MS,
  );

  test(
    '--yes allows everything, whatever the operator’s rules',
    async () => {
      const env = await ownModel(ask('One more test?'), rewrite('cart.mjs', '> 10', '>= 10'));
      const rules = { CLAUDE_CODE_MCP_APPROVALS: 'human', CLAUDE_CODE_MCP_TOOLSET: 'explicit' };
      const terminal = captureTerminal();
      const code = await play({ terminal, env: { ...env, ...rules } }, ['--live', '--yes']);
      expect(terminal.text).toContain('the bug is really fixed');
      expect(code).toBe(0);
      await expectNothingLeft();
    },
    WITHIN_MS,
  );
});

test.each([
  { args: ['--fast'], says: 'no flag "--fast"' },
  { args: ['--live'], says: 'pass --yes' },
])('demo $args is bad usage', async ({ args, says }) => {
  const { code, stderr } = await runCommand(['demo', ...args], { env: place.env() });
  expect(stderr).toContain(says);
  expect(code).toBe(2);
});

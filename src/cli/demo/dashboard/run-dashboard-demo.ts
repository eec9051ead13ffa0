import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { flagOf } from '../../../config/settings-table.ts';
import { messageOf } from '../../../errors/errors.ts';
import type { StartBody } from '../../../schema/api.ts';
import { type MessageReply, text, tool } from '../../../scripted-model/reply.ts';
import { type ScriptedModel, startScriptedModel } from '../../../scripted-model/scripted-model.ts';
import { createWorld } from '../../rehearsal/rehearsal.ts';
import { BrokenShop, BUG, FIX, TEST_COMMAND } from '../demo-script.ts';
import type { DemoContext } from '../run-demo.ts';

/** What the model answers in the demo of the dashboard: three sessions that work for minutes, and one that soon asks. */

const USAGE = { input_tokens: 2_400, output_tokens: 180, cache_read_input_tokens: 14_000 };
/** How often a working session repeats its round: about ten minutes at the usual pace. */
const ROUNDS = 60;

type Start = Pick<StartBody, 'prompt' | 'title' | 'permissionMode' | 'workspace' | 'allowedTools'>;

interface Part {
  readonly start: Start;
  readonly steps: readonly MessageReply[];
}

function dashboardScript(model: ScriptedModel, shop: string, paceMs: number): Start[] {
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

/** `demo --dashboard`: a separate hub with the scripted model, working sessions, and the link to click. */

const run = promisify(execFile);

const START_WITHIN_MS = 60_000;
/** Long enough to look at, short enough to see something happen. */
const PACE_MS = 4_000;

/** Runs until Ctrl-C. */
export async function runDashboardDemo(context: DemoContext): Promise<number> {
  const { terminal, signal } = context;
  const { paint } = terminal;
  const say = (line = ''): void => terminal.write(`${line}\n`);
  const world = await createWorld(context.env, context.temporaryDir);
  const model = await startScriptedModel({ record: 'none' });
  let hub: DemoHub | undefined;
  try {
    say(
      `${paint.bold('claude-code-mcp demo --dashboard')}  ${paint.dim('the real Claude Code with a scripted model, no key, no network')}\n`,
    );
    const shop = new BrokenShop(world.root, world.toolEnv);
    await shop.create();
    const starts = dashboardScript(model, shop.directory, PACE_MS);
    hub = new DemoHub(context, world.stateDir, { ...world.toolEnv, ...model.env() }, shop.directory);
    await hub.start(signal);
    say(`  ${paint.green('✓')} A hub is running at ${hub.url}`);
    const caller = await hub.token('an editor', 'caller');
    for (const start of starts) {
      await hub.post('sessions', { ...start, cwd: shop.directory, enableFileCheckpointing: true }, caller);
      say(`  ${paint.green('✓')} ${start.title ?? ''}`);
    }
    const admin = await hub.token('you', 'admin');
    say(`\n${paint.bold('▸ Open')}  ${await hub.link()}`);
    say(paint.dim('  The link works once, within two minutes. After that, sign in with this token:'));
    say(paint.dim(`  ${admin}`));
    say(`\n  One session is about to ask you something. Ctrl-C ends the demo and leaves nothing behind.`);
    await hub.ended(signal);
    return signal.aborted ? 0 : 1;
  } catch (error) {
    if (signal.aborted) return 0;
    say(`\n${paint.red('✗')} ${messageOf(error)}`);
    return 1;
  } finally {
    await hub?.stop();
    await model.close();
    await world.remove();
  }
}

class DemoHub {
  readonly #context: DemoContext;
  readonly #stateDir: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #cwd: string;
  #process: ChildProcess | undefined;
  url = '';

  constructor(context: DemoContext, stateDir: string, env: Readonly<Record<string, string>>, cwd: string) {
    this.#context = context;
    this.#stateDir = stateDir;
    this.#env = env;
    this.#cwd = cwd;
  }

  async start(signal: AbortSignal): Promise<void> {
    const { program, settings } = this.#context;
    const rules = [flagOf('listen'), '127.0.0.1:0', flagOf('logLevel'), 'error'];
    if (settings.executable !== undefined) rules.push(flagOf('executable'), settings.executable);
    const child = spawn(process.execPath, [program, 'hub', ...this.#place(), ...rules], {
      cwd: this.#cwd,
      env: this.#env,
      // The channel tells the hub when the demo is gone, even if it was killed.
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      // Ctrl-C in a terminal goes to the whole group; the hub is told by the demo, once.
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    this.#process = child;
    const record = path.join(this.#stateDir, 'hub.json');
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(START_WITHIN_MS)]);
    while (!deadline.aborted && child.exitCode === null) {
      const text = await readFile(record, 'utf8').catch(() => undefined);
      if (text !== undefined) {
        this.url = (JSON.parse(text) as { url: string }).url;
        return;
      }
      await sleep(50);
    }
    throw new Error('The hub did not start; run claude-code-mcp doctor to see what to fix.');
  }

  async token(name: string, role: string): Promise<string> {
    const told = await this.#command('token', 'create', name, '--role', role, '--json');
    return (JSON.parse(told) as { token: string }).token;
  }

  async link(): Promise<string> {
    return (await this.#command('hub', 'open', '--print')).trim();
  }

  async post(route: string, body: object, token: string): Promise<void> {
    const response = await fetch(`${this.url.replace(/\/$/, '')}/api/v1/${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`The hub did not start a session: ${await response.text()}`);
    await response.body?.cancel();
  }

  /** Until the demo is ended, or the hub exits by itself. */
  async ended(signal: AbortSignal): Promise<void> {
    const child = this.#process;
    if (child?.exitCode !== null || signal.aborted) return;
    await once(child, 'exit', { signal }).catch(() => undefined);
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }

  async #command(...args: string[]): Promise<string> {
    const { stdout } = await run(process.execPath, [this.#context.program, ...args, ...this.#place()], {
      cwd: this.#cwd,
      env: this.#env,
      windowsHide: true,
    });
    return stdout;
  }

  #place(): string[] {
    return [flagOf('stateDir'), this.#stateDir];
  }
}

/** `demo --dashboard`: a separate hub with the scripted model, working sessions, and the link to click. */

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { flagOf } from '../../../config/settings-table.ts';
import { messageOf } from '../../../errors/errors.ts';
import { startScriptedModel } from '../../../scripted-model/scripted-model.ts';
import { createWorld } from '../../rehearsal/world.ts';
import { BrokenShop } from '../demo-script.ts';
import type { DemoContext } from '../run-demo.ts';
import { dashboardScript } from './dashboard-script.ts';

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
      stdio: ['ignore', 'ignore', 'inherit'],
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

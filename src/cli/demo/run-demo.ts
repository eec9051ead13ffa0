/** The `demo` command: a complete task, from a failing test to a passing one, through a real client and a real server. */

import { SettingsError } from '../../config/bad-input.ts';
import { messageOf } from '../../errors/errors.ts';
import { startScriptedModel, type ScriptedModel } from '../../scripted-model/scripted-model.ts';
import {
  type CheckAnswer,
  createWorld,
  liveEnvironment,
  openRehearsal,
  type RehearsalSettings,
  type World,
} from '../rehearsal/rehearsal.ts';
import { counted } from '../../text/columns.ts';
import { indented } from '../client/show-events.ts';
import { DEMO_FLAGS } from '../commands.ts';
import { parseFlags, refuseWords } from '../parse-flags.ts';
import { type Paint, Screen, type Terminal } from '../terminal/terminal.ts';
import { BrokenShop, PROMPT, scriptDemo } from './demo-script.ts';
import { allowAll, askPerson, followSession, diffLines } from './follow-session.ts';

const INTERRUPTED = 130;
/** Patient, because a first start on a busy machine is slow. */
const START_WITHIN_MS = 50_000;
/** Between steps, when somebody is watching. */
const PACE_MS = 250;

export interface DemoContext {
  readonly program: string;
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
  readonly temporaryDir: string;
  readonly settings: RehearsalSettings;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  /** Other model answers, to test the demo with wrong ones. */
  readonly script?: typeof scriptDemo;
}

interface Choice {
  readonly live: boolean;
  readonly yes: boolean;
  readonly dashboard: boolean;
}

/** Returns the exit code: 0 only if the bug is really gone. */
export async function runDemo(rest: readonly string[], context: DemoContext): Promise<number> {
  const { terminal, signal } = context;
  const choice = parse(rest);
  if (choice.dashboard) {
    const { runDashboardDemo } = await import('./dashboard/run-dashboard-demo.ts');
    return runDashboardDemo(context);
  }
  if (choice.live && !choice.yes && !terminal.canAsk)
    throw new SettingsError(
      'The live demo asks before Claude acts, and this is not an interactive terminal; pass --yes to allow everything.',
    );
  const world = await createWorld(context.env, context.temporaryDir);
  const model = choice.live ? undefined : await startScriptedModel();
  const screen = new Screen(terminal);
  try {
    return (await play(choice, context, { world, model, screen })) ? 0 : 1;
  } catch (error) {
    screen.now('');
    if (signal.aborted) return INTERRUPTED;
    screen.line(`\n${terminal.paint.red('✗')} ${messageOf(error)}`);
    screen.line('  Run claude-code-mcp doctor to see what to fix.');
    return 1;
  } finally {
    screen.now('');
    await model?.close();
    await world.remove();
  }
}

interface Stage {
  readonly world: World;
  readonly model: ScriptedModel | undefined;
  readonly screen: Screen;
}

async function play(choice: Choice, context: DemoContext, { world, model, screen }: Stage): Promise<boolean> {
  const { terminal, settings, env, program, version, signal, script = scriptDemo } = context;
  const { paint } = terminal;
  const started = performance.now();
  const paceMs = terminal.isLive ? PACE_MS : 0;
  const who = model ? 'a scripted model, no key, no network' : 'your own login';
  screen.line(`${paint.bold('claude-code-mcp demo')}  ${paint.dim(`the real Claude Code with ${who}`)}\n`);

  const shop = new BrokenShop(world.root, world.toolEnv);
  await shop.create();
  const before = await shop.prove();
  if (before.passed) throw new Error("The demo's test passes although the bug is still there.");
  screen.line(`  ${paint.red('✗')} A small shop in a git repository, and its test fails:`);
  screen.line(paint.dim(`    ${failedTests(before.output)}`));

  if (model) script(model, shop.directory, paceMs);
  const client = await openRehearsal({
    program,
    version,
    settings,
    stateDir: world.stateDir,
    cwd: shop.directory,
    env: model ? { ...world.toolEnv, ...model.env() } : liveEnvironment(env),
  });
  let sessionId: string | undefined;
  let end: CheckAnswer;
  try {
    screen.line(`  ${paint.green('✓')} An MCP client is connected: ${(await client.toolNames()).join(', ')}`);
    screen.line(`\n${paint.bold('▸ claude_code')}  ${PROMPT}`);
    screen.now('Claude Code starts');
    const advanced = { sessionInitTimeoutMs: START_WITHIN_MS };
    ({ sessionId } = await client.call('claude_code', { prompt: PROMPT, cwd: shop.directory, advanced }));
    const decide = choice.live && !choice.yes ? askPerson(terminal) : allowAll(paceMs);
    end = await followSession({ client, sessionId, project: shop.directory, screen, paint, decide, signal });
  } finally {
    await client.close(sessionId);
  }

  const diff = await shop.diff();
  const after = await shop.prove();
  screen.line();
  for (const line of diff === '' ? [`  ${paint.red('No file was changed.')}`] : diffLines(diff, paint)) {
    screen.line(line);
  }
  screen.line(`\n  ${paint.dim(figures(end, performance.now() - started, model !== undefined))}`);
  for (const line of failureLines(end, paint)) screen.line(line);
  screen.line(verdict(after.passed, end, terminal));
  if (!after.passed) screen.line(paint.dim(`    ${failedTests(after.output)}`));
  return after.passed && diff !== '' && end.status === 'idle' && end.result?.isError === false;
}

/** Whole: it may name the command that mends it. */
function failureLines({ status, result }: CheckAnswer, paint: Paint): string[] {
  if (status === 'idle' && result?.isError === false) return [];
  return indented(paint.red('✗'), `The session failed: ${result?.result ?? status}`);
}

function verdict(passed: boolean, { status, result }: CheckAnswer, { paint }: Terminal): string {
  if (!passed) return `${paint.red('✗')} ${paint.bold('The test still fails: the bug is not fixed.')}`;
  if (status !== 'idle' || result?.isError !== false)
    return `${paint.red('✗')} ${paint.bold('The test passes, but the session failed.')}`;
  return `${paint.green('✓')} ${paint.bold('The test passes: the bug is really fixed.')}`;
}

function figures({ result }: CheckAnswer, ms: number, scripted: boolean): string {
  const all = `${(ms / 1000).toFixed(1)} s in total`;
  if (result === undefined) return all;
  const cost = `$${result.totalCostUsd.toFixed(4)}${scripted ? ' at list price, nothing was charged' : ''}`;
  return `${counted(result.numTurns, 'turn')}, ${cost}, ${(result.durationMs / 1000).toFixed(1)} s of Claude, ${all}`;
}

/** The names of the failed tests, from the output of the test runner. */
function failedTests(output: string): string {
  const names = [...output.matchAll(/✖ (.+?) \([\d.]+m?s\)/g)].map(([, name]) => `✖ ${name ?? ''}`);
  return [...new Set(names)].join('\n    ') || output.trim().slice(-400);
}

function parse(rest: readonly string[]): Choice {
  const { given, words } = parseFlags('demo', DEMO_FLAGS, rest);
  refuseWords('demo', words);
  const { live = false, yes = false, dashboard = false } = given;
  if (dashboard && (live || yes)) throw new SettingsError('--dashboard cannot be combined with other flags.');
  return { live, yes, dashboard };
}

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { childEnvironment } from '../../config/child-environment.ts';
import { type Host, pathsOf } from '../../config/host.ts';
import type { SettingsSource } from '../../config/load-settings.ts';
import { bundledClaudeCode, type BundledClaudeCode } from '../../driver/claude-code-program.ts';
import { drawsLimits } from '../../engine/rules/imposed-rules.ts';
import { messageOf } from '../../errors/errors.ts';
import { isSupportedNode, NODE_RANGE } from '../../platform/node-version.ts';
import { text } from '../../scripted-model/reply.ts';
import { startScriptedModel } from '../../scripted-model/scripted-model.ts';
import { printableLines } from '../../text/invisible.ts';
import { DOCTOR_FLAGS } from '../commands.ts';
import { CLIENTS, type InstallClient } from '../install/clients.ts';
import { DEFAULT_NAME } from '../install/server-entry.ts';
import { parseFlags, refuseWords } from '../parse-flags.ts';
import { createWorld, openRehearsal, type RehearsalSettings } from '../rehearsal/rehearsal.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { checkClaudeCode, checkLogin } from './check-claude-code.ts';
import { checkHub } from './check-hub.ts';
import {
  checkConfigDirectory,
  checkGit,
  checkGitBash,
  checkNesting,
  checkSandbox,
  checkSettings,
  checkStateDirectory,
  checkWorkingDirectory,
  type Finding,
  ok,
  problem,
  skipped,
} from './check-setup.ts';

const CLIENTS_CHECK = 'Clients';

/**
 * Which clients start this server, and whether the files that their entries name still exist: version managers keep
 * each Node, and what was installed with it, in a directory of its own.
 */
export async function* checkClients(host: Host): AsyncGenerator<Finding> {
  const working: string[] = [];
  let broken = 0;
  for (const [name, client] of Object.entries(CLIENTS) as [string, InstallClient][]) {
    const { title, format } = client;
    const place = client.file(host);
    const text = await readFile(place, 'utf8').catch(() => '');
    for (const [entry, line] of commandsIn(text, format)) {
      const missing = missingFile(line, host);
      if (missing === undefined) working.push(entry === DEFAULT_NAME ? title : `${title} (${entry})`);
      else {
        broken++;
        yield problem(
          CLIENTS_CHECK,
          `${title} starts ${missing}, which does not exist (${entry} in ${place})`,
          `Correct the entry: claude-code-mcp install ${name}${entry === DEFAULT_NAME ? '' : ` --name ${entry}`}`,
        );
      }
    }
  }
  if (working.length > 0) yield ok(CLIENTS_CHECK, working.join(', '));
  else if (broken === 0)
    yield skipped(CLIENTS_CHECK, 'none has this server yet; add it: claude-code-mcp install <client>');
}

/** A file that its client cannot read either says nothing about this server. */
function commandsIn(text: string, format: InstallClient['format']): [string, readonly string[]][] {
  try {
    // Other programs have a dist/main.mjs too.
    return [...format.commands(text)].filter(
      ([name, line]) => name === DEFAULT_NAME || line.some((word) => word.includes('claude-code-mcp')),
    );
  } catch {
    return [];
  }
}

/** Of the command and its program; what follows them may name files that are yet to be made. */
function missingFile([command = '', program = '']: readonly string[], host: Host): string | undefined {
  return [command, program].find((file) => pathsOf(host).isAbsolute(file) && !existsSync(file));
}

const START_CHECK = 'Trial run';
const PROMPT = 'Say that you are ready.';
const READY = 'I am ready.';
const ANSWER_WITHIN_MS = 50_000;

export interface StartContext {
  readonly program: string;
  readonly version: string;
  readonly settings: RehearsalSettings;
  readonly env: NodeJS.ProcessEnv;
  readonly temporaryDir: string;
}

/** A whole turn through client, server and Claude Code; only the model is a stand-in, so no login is needed. */
async function checkStart(context: StartContext): Promise<Finding> {
  const started = performance.now();
  try {
    const said = await oneTurn(context);
    if (said !== READY) throw new Error(`the session ended with ${JSON.stringify(said)}`);
    return ok(
      START_CHECK,
      `Claude Code answered through the server in ${seconds(performance.now() - started)}, with a scripted model: no login or network was used`,
    );
  } catch (error) {
    return problem(
      START_CHECK,
      messageOf(error),
      'Fix the problems above; if there are none, run claude-code-mcp --log-level debug and report the output.',
    );
  }
}

async function oneTurn({ program, version, settings, env, temporaryDir }: StartContext): Promise<string> {
  const world = await createWorld(env, temporaryDir);
  const model = await startScriptedModel();
  model.on(PROMPT).reply(text(READY));
  try {
    const { stateDir, root: cwd, toolEnv } = world;
    const client = await openRehearsal({
      program,
      version,
      settings,
      stateDir,
      cwd,
      env: { ...toolEnv, ...model.env() },
    });
    let sessionId: string | undefined;
    try {
      // People run the doctor on machines that are slow.
      const advanced = { sessionInitTimeoutMs: ANSWER_WITHIN_MS };
      const state = await client.call('claude_code', { prompt: PROMPT, cwd, waitMs: ANSWER_WITHIN_MS, advanced });
      ({ sessionId } = state);
      return state.result?.result ?? state.status;
    } finally {
      await client.close(sessionId);
    }
  } finally {
    await model.close();
    await world.remove();
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** The `doctor` command: checks this machine and says what to fix. */

const INTERRUPTED = 130;

export interface DoctorContext extends SettingsSource {
  readonly program: string;
  readonly version: string;
  readonly nodeVersion: string;
  readonly configDir: string;
  readonly temporaryDir: string;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  /** What the Agent SDK ships; looked up if not given. */
  readonly bundled?: BundledClaudeCode;
}

/** Returns the exit code: 0 when nothing has to be fixed. */
export async function runDoctor(rest: readonly string[], context: DoctorContext): Promise<number> {
  const { terminal, signal, version } = context;
  const { given, words } = parseFlags('doctor', DOCTOR_FLAGS, rest);
  refuseWords('doctor', words);
  const { json = false, offline = false } = given;
  const findings: Finding[] = [];
  for await (const finding of examine(context, offline)) {
    if (signal.aborted) return INTERRUPTED;
    findings.push(finding);
    if (!json) terminal.write(lines(finding, terminal));
  }
  const problems = findings.filter(({ status }) => status === 'problem').length;
  terminal.write(
    json ? `${JSON.stringify({ version, ok: problems === 0, findings }, null, 2)}\n` : summary(findings, terminal),
  );
  return problems === 0 ? 0 : 1;
}

/** One check at a time: each is printed as soon as it is done, and later ones depend on earlier ones. */
async function* examine(context: DoctorContext, offline: boolean): AsyncGenerator<Finding> {
  const { nodeVersion, env, cwd, homedir, platform, configDir } = context;
  const needs = `this server requires ${NODE_RANGE}`;
  yield isSupportedNode(nodeVersion)
    ? ok('Node', nodeVersion)
    : problem('Node', `${nodeVersion}; ${needs}`, 'Install a current Node from https://nodejs.org.');

  const { finding, settings } = checkSettings(context);
  yield finding;
  yield checkNesting(settings);
  yield await checkWorkingDirectory(cwd, settings);
  yield await checkStateDirectory(settings);
  yield await checkConfigDirectory(configDir);
  const gitBash = checkGitBash(context, settings.gitBashPath);
  if (gitBash) yield gitBash;
  yield await checkGit(context);
  yield checkSandbox(context, settings.sandbox);
  // A wrong setting is reported once, although the hub would have it too.
  for await (const one of checkHub(context, context.version)) if (one.found !== finding.found) yield one;
  yield* checkClients(context);

  const { executable } = settings;
  const bundled = context.bundled ?? bundledClaudeCode(platform, process.arch);
  const source = {
    executable,
    bundled,
    env: childEnvironment(env, {}, platform),
    homedir,
    limited: drawsLimits(settings),
  };
  const claudeCode = await checkClaudeCode(source);
  yield claudeCode;
  if (claudeCode.status !== 'ok') {
    yield skipped('Login', 'not checked without Claude Code');
    yield skipped('Trial run', 'skipped without Claude Code');
    return;
  }
  yield await checkLogin(source, offline);
  yield await checkStart({ ...context, settings });
}

const NAME_WIDTH = 21;

function lines({ check, status, found, remedy }: Finding, { paint }: Terminal): string {
  const mark = { ok: paint.green('✓'), problem: paint.red('✗'), skipped: paint.dim('-') }[status];
  const words = printableLines(found);
  const shown = status === 'problem' ? paint.red(words) : paint.dim(words);
  const indent = ' '.repeat(NAME_WIDTH + 3);
  return `${mark} ${check.padEnd(NAME_WIDTH)} ${shown}\n${remedy === undefined ? '' : `${indent}${paint.bold('→')} ${printableLines(remedy)}\n`}`;
}

function summary(findings: readonly Finding[], { paint }: Terminal): string {
  const problems = findings.filter(({ status }) => status === 'problem').length;
  const isVerified = findings.some(({ check, status }) => check === 'Login' && status === 'ok');
  if (problems === 0)
    return `\n${paint.green(isVerified ? 'Everything looks good.' : 'Nothing to fix; whether the login works was not verified.')}\n`;
  return `\n${paint.red(`${problems} ${problems === 1 ? 'problem' : 'problems'} to fix.`)}\n`;
}

/** The `doctor` command: checks this machine and says what to fix. */

import { childEnvironment } from '../../config/child-environment.ts';
import type { SettingsSource } from '../../config/load-settings.ts';
import { isSupportedNode, NODE_RANGE } from '../../platform/node-version.ts';
import { bundledClaudeCode, type BundledClaudeCode } from '../../driver/bundled-claude-code.ts';
import { drawsLimits } from '../../engine/rules/imposed-rules.ts';
import { printableLines } from '../../text/invisible.ts';
import { DOCTOR_FLAGS } from '../commands.ts';
import { parseFlags, refuseWords } from '../parse-flags.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { checkClaudeCode, checkLogin } from './check-claude-code.ts';
import {
  checkConfigDirectory,
  checkStateDirectory,
  checkWorkingDirectory,
  checkGit,
  checkGitBash,
  checkSandbox,
  checkNesting,
  checkSettings,
  ok,
  problem,
  skipped,
  type Finding,
} from './check-setup.ts';
import { checkClients } from './check-clients.ts';
import { checkHub } from './check-hub.ts';
import { checkStart } from './check-start.ts';

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
  yield* checkHub(context, context.version);
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

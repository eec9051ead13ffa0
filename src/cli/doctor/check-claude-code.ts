import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { isBareName } from '../../config/setting-kinds.ts';
import type { BundledClaudeCode } from '../../driver/bundled-claude-code.ts';
import { isOlder, VERBATIM_PROMPTS_SINCE } from '../../driver/program-version.ts';
import { ok, problem, skipped, type Finding } from './check-setup.ts';

export interface ClaudeCodeSource {
  /** The one the operator chose; otherwise the bundled one counts. */
  readonly executable: string | undefined;
  readonly bundled: BundledClaudeCode | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly homedir: string;
  /** Whether the operator's limits need one that takes prompts as plain text. */
  readonly limited: boolean;
}

const CHECK = 'Claude Code';
const LOGIN = 'Login';
const ANSWER_WITHIN_MS = 20_000;
const REINSTALL = 'Reinstall this package with optional dependencies (npm install --include=optional)';

/** Whether Claude Code is there, whether it runs, and whether the Agent SDK supports its version. */
export async function checkClaudeCode(source: ClaudeCodeSource): Promise<Finding> {
  const { executable, bundled } = source;
  if (bundled === undefined) return problem(CHECK, 'the Claude Agent SDK is not installed', `${REINSTALL}.`);
  const file = executable ?? bundled.executable;
  if (file === undefined) {
    return problem(
      CHECK,
      "the Agent SDK's native executable is not installed",
      `${REINSTALL}, or point CLAUDE_CODE_MCP_EXECUTABLE to your own Claude Code.`,
    );
  }
  const isMissing = isBareName(file);
  if (isMissing || !existsSync(file)) {
    return problem(
      CHECK,
      isMissing ? `there is no program called ${file} on the PATH` : `${file} does not exist`,
      bundled.executable === undefined
        ? 'Install Claude Code, or set CLAUDE_CODE_MCP_EXECUTABLE to its full path.'
        : 'Correct CLAUDE_CODE_MCP_EXECUTABLE, or unset it to use the bundled one.',
    );
  }
  const answer = await runClaudeCode(source, ['--version']);
  const version = /^(\d+\.\d+\.\d+)/.exec(answer.stdout.trim())?.[1];
  if (version === undefined) {
    const said = answer.failure ?? lastLine(answer.stderr || answer.stdout);
    const remedy = /\.(cmd|bat|ps1)$/i.test(file)
      ? 'This is a shell script: use the path of claude.exe itself.'
      : 'Run it in a terminal to see what is wrong, or unset CLAUDE_CODE_MCP_EXECUTABLE to use the bundled one.';
    return problem(CHECK, `${file} did not report its version: ${said}`, remedy);
  }
  if (isOlderRelease(version, bundled.version)) {
    return problem(
      CHECK,
      `${version} at ${file} is older than the version the Agent SDK expects (${bundled.version})`,
      'Update it with "claude update", or unset CLAUDE_CODE_MCP_EXECUTABLE to use the bundled one.',
    );
  }
  if (source.limited && isOlder(version, VERBATIM_PROMPTS_SINCE)) {
    return problem(
      CHECK,
      `${version} at ${file} cannot treat prompts as plain text, which the configured limits require: it would run commands in them`,
      `Update it to ${VERBATIM_PROMPTS_SINCE} or later with "claude update", or unset CLAUDE_CODE_MCP_EXECUTABLE to use the bundled one.`,
    );
  }
  return ok(CHECK, `${version}, ${executable === undefined ? 'bundled' : file}`);
}

/** Asks Claude Code itself: it alone knows every way to log in, the system's key store among them. */
export async function checkLogin(source: ClaudeCodeSource): Promise<Finding> {
  const { stdout } = await runClaudeCode(source, ['auth', 'status', '--json']);
  const status = parse(stdout);
  if (status === undefined) return skipped(LOGIN, 'this Claude Code cannot tell whether it is logged in');
  if (status.loggedIn !== true) {
    return problem(
      LOGIN,
      'not logged in, and no API key is set',
      // By its path: users who have Claude Code only from this package have no such command.
      `Run "${programOf(source)}" auth login, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN where the server is started.`,
    );
  }
  const how = [status.authMethod, status.apiKeySource, status.apiProvider].filter((word) => typeof word === 'string');
  return ok(LOGIN, how.join(', '));
}

/** An older patch release is fine: they come out several times a week. */
function isOlderRelease(version: string, wanted: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number);
  return major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
}

function lastLine(text: string): string {
  const line = text.trim().split('\n').at(-1);
  return line === undefined || line === '' ? 'no output' : line;
}

interface Answer {
  readonly stdout: string;
  readonly stderr: string;
  readonly failure: string | undefined;
}

function programOf({ executable, bundled }: ClaudeCodeSource): string {
  return executable ?? bundled?.executable ?? 'claude';
}

function runClaudeCode(source: ClaudeCodeSource, args: string[]): Promise<Answer> {
  const { env, homedir } = source;
  const file = programOf(source);
  return new Promise((resolve) => {
    const answered = (error: (Error & { code?: unknown }) | null, stdout: string, stderr: string): void =>
      // An exit code is an answer; anything else means it did not run.
      resolve({ stdout, stderr, failure: error && typeof error.code !== 'number' ? error.message : undefined });
    try {
      execFile(file, args, { cwd: homedir, env, timeout: ANSWER_WITHIN_MS, windowsHide: true }, answered);
    } catch (error) {
      answered(error as Error, '', '');
    }
  });
}

interface LoginStatus {
  readonly loggedIn?: unknown;
  readonly authMethod?: unknown;
  readonly apiKeySource?: unknown;
  readonly apiProvider?: unknown;
}

function parse(text: string): LoginStatus | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

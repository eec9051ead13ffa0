import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { isBareName } from '../../config/setting-kinds.ts';
import { loginRemedy } from '../../driver/translate.ts';
import { type BundledClaudeCode, isOlder, VERBATIM_PROMPTS_SINCE } from '../../driver/claude-code-program.ts';
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
const REQUEST_WITHIN_MS = 15_000;
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
      : executable === undefined
        ? 'Run it in a terminal to see what is wrong, or reinstall this package.'
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

/**
 * Asks Claude Code itself: it alone knows every way to log in, the system's key store among them. That there is a login
 * does not mean that it is accepted, so one short request is made with it.
 */
export async function checkLogin(source: ClaudeCodeSource, offline: boolean): Promise<Finding> {
  const { stdout } = await runClaudeCode(source, ['auth', 'status', '--json']);
  const status = parse(stdout);
  if (status === undefined) return skipped(LOGIN, 'this Claude Code cannot tell whether it is logged in');
  if (status.loggedIn !== true) {
    return problem(LOGIN, 'not logged in, and no API key is set', loginRemedy(programOf(source)));
  }
  const login = loginInWords(status);
  if (offline) return skipped(LOGIN, `${login}; not verified (--offline)`);
  const said = await oneRequest(source);
  switch (said.kind) {
    case 'accepted':
      return ok(LOGIN, `${login}; verified with one request`);
    case 'refused':
      return problem(LOGIN, `${login}, but it is refused: ${said.why}`, loginRemedy(programOf(source)));
    case 'unknown':
      return skipped(LOGIN, `${login}; not verified: ${said.why}`);
  }
}

/** Claude Code names it by identifiers, such as `claude.ai`, `api_key` and `bedrock`. */
function loginInWords({ authMethod, apiKeySource, apiProvider }: LoginStatus): string {
  const method = typeof authMethod === 'string' ? authMethod.replaceAll('_', ' ').replace('api', 'API') : 'logged in';
  const from = typeof apiKeySource === 'string' ? ` from ${apiKeySource}` : '';
  const at = typeof apiProvider === 'string' && apiProvider !== 'firstParty' ? `, ${apiProvider}` : '';
  return `${method}${from}${at}`;
}

type Verified = { readonly kind: 'accepted' } | { readonly kind: 'refused' | 'unknown'; readonly why: string };

/** The shortest there is, without tools, in the home directory, and not kept. */
async function oneRequest(source: ClaudeCodeSource): Promise<Verified> {
  const output = ['-p', 'Reply with the word ready.', '--output-format', 'stream-json', '--verbose'];
  const model = ['--model', 'haiku', '--tools', '', '--strict-mcp-config', '--no-session-persistence'];
  const child = spawn(programOf(source), [...output, ...model], {
    ...{ cwd: placeToRun(source.homedir), env: source.env, timeout: REQUEST_WITHIN_MS, windowsHide: true },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  child.once('error', () => undefined);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const verified = verifiedBy(line);
      if (verified) return verified;
    }
    return { kind: 'unknown', why: `no answer within ${String(REQUEST_WITHIN_MS / 1000)} s` };
  } finally {
    child.kill();
  }
}

/** Claude Code retries a refusal, and a network that is away, for minutes: its first report of one is enough. */
function verifiedBy(line: string): Verified | undefined {
  const { type, subtype, is_error, result, error_status } = (parse(line) ?? {}) as Record<string, unknown>;
  if (type === 'system' && subtype === 'api_retry')
    return error_status === 401 || error_status === 403
      ? { kind: 'refused', why: `the API answers ${String(error_status)}` }
      : { kind: 'unknown', why: 'the API did not respond' };
  if (type !== 'result') return undefined;
  if (is_error !== true) return { kind: 'accepted' };
  const why = typeof result === 'string' ? lastLine(result) : 'Claude Code gave no reason';
  return { kind: /log ?in|authenticat|api key/i.test(why) ? 'refused' : 'unknown', why };
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

/** A program that is started in a directory that does not exist looks as if it were missing itself. */
function placeToRun(homedir: string): string {
  return existsSync(homedir) ? homedir : path.parse(homedir).root;
}

function runClaudeCode(source: ClaudeCodeSource, args: string[]): Promise<Answer> {
  const { env, homedir } = source;
  const file = programOf(source);
  return new Promise((resolve) => {
    const answered = (error: (Error & { code?: unknown }) | null, stdout: string, stderr: string): void =>
      // An exit code is an answer; anything else means it did not run.
      resolve({ stdout, stderr, failure: error && typeof error.code !== 'number' ? error.message : undefined });
    try {
      execFile(file, args, { cwd: placeToRun(homedir), env, timeout: ANSWER_WITHIN_MS, windowsHide: true }, answered);
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

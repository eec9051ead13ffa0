import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { DomainError } from '../errors/errors.ts';

export interface BundledClaudeCode {
  /** The version of Claude Code that the Agent SDK was built for. */
  readonly version: string;
  /** The native program; absent when its optional package was not installed. */
  readonly executable: string | undefined;
}

/** What a session runs unless another Claude Code is specified; undefined if the SDK itself is missing. */
export function bundledClaudeCode(platform: NodeJS.Platform, arch: string): BundledClaudeCode | undefined {
  const sdk = locate('@anthropic-ai/claude-agent-sdk', import.meta.url);
  if (sdk === undefined) return undefined;
  const manifest = JSON.parse(readFileSync(path.join(path.dirname(sdk), 'package.json'), 'utf8')) as {
    claudeCodeVersion?: string;
  };
  return { version: manifest.claudeCodeVersion ?? '0.0.0', executable: installedPrograms(sdk, platform, arch)[0] };
}

let only: { readonly program: string | undefined } | undefined;

/**
 * The program, if there is no choice. To choose between those for two C libraries the SDK has Node generate a
 * diagnostic report at each session start, which takes 10 ms; npm installs only the one that fits.
 */
export function onlyBundledProgram(): string | undefined {
  if (only) return only.program;
  const sdk = locate('@anthropic-ai/claude-agent-sdk', import.meta.url);
  const programs = sdk === undefined ? [] : installedPrograms(sdk, process.platform, process.arch);
  only = { program: programs.length === 1 ? programs[0] : undefined };
  return only.program;
}

function installedPrograms(sdk: string, platform: NodeJS.Platform, arch: string): string[] {
  const file = platform === 'win32' ? 'claude.exe' : 'claude';
  const packages = [`${platform}-${arch}`, ...(platform === 'linux' ? [`${platform}-${arch}-musl`] : [])];
  return packages
    .map((name) => locate(`@anthropic-ai/claude-agent-sdk-${name}/${file}`, sdk))
    .filter((candidate) => candidate !== undefined)
    .filter((candidate) => existsSync(candidate));
}

function locate(specifier: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(specifier);
  } catch {
    return undefined;
  }
}

/** The first Claude Code that can treat prompts as plain text; an older one ignores the option. */
export const VERBATIM_PROMPTS_SINCE = '2.1.248';

/** A machine that starts many at once may need some of it. */
const ANSWER_WITHIN_MS = 20_000;

const known = new Map<string, string>();

/** Non-bundled Claude Codes: whether they can treat prompts as plain text. */
export async function checkTakesPromptsVerbatim(program: string, env: Record<string, string>): Promise<void> {
  const version = await versionOf(program, env);
  if (version !== undefined && !isOlder(version, VERBATIM_PROMPTS_SINCE)) return;
  const found = version === undefined ? 'does not report its version' : `is version ${version}`;
  throw new DomainError(
    'PERMISSION_DENIED',
    `Prompts must be plain text here, and the Claude Code at ${program} ${found}: only ${VERBATIM_PROMPTS_SINCE} and later can be kept from running commands and reading files named in a prompt. Update it with "claude update", or use the bundled one.`,
  );
}

export function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const differing = b.findIndex((part, index) => part !== a[index]);
  return differing !== -1 && (a[differing] ?? 0) < (b[differing] ?? 0);
}

/** A program that was replaced under the same name is queried again. */
async function versionOf(program: string, env: Record<string, string>): Promise<string | undefined> {
  const file = statSync(program, { throwIfNoEntry: false });
  const identity = file && [program, file.ino, file.size, file.mtimeMs].join(' ');
  const remembered = identity === undefined ? undefined : known.get(identity);
  if (remembered !== undefined) return remembered;
  const version = await askVersion(program, env);
  if (identity !== undefined && version !== undefined) known.set(identity, version);
  return version;
}

function askVersion(program: string, env: Record<string, string>): Promise<string | undefined> {
  // As the SDK starts it.
  const isScript = /\.[cm]?[jt]sx?$/.test(program);
  const [file, args] = isScript ? [process.execPath, [program, '--version']] : [program, ['--version']];
  return new Promise((resolve) => {
    const options = { env, timeout: ANSWER_WITHIN_MS, windowsHide: true };
    try {
      const child = execFile(file, args, options, (_error, stdout) =>
        resolve(/^(\d+\.\d+\.\d+)/.exec(stdout.trim())?.[1]),
      );
      child.stdin?.end();
    } catch {
      resolve(undefined);
    }
  });
}

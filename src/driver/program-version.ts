import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { DomainError } from '../errors/errors.ts';

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

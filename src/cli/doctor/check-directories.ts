import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, mkdir, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '../../config/load-settings.ts';
import { messageOf } from '../../errors/errors.ts';
import { ok, problem, type Finding } from './finding.ts';

/** Where sessions work that name no directory of their own. */
export async function checkWorkingDirectory(cwd: string, { allowedDirs }: Settings): Promise<Finding> {
  const check = 'Working directory';
  try {
    await readdir(cwd);
  } catch (error) {
    return problem(check, messageOf(error), 'Start the server in an existing directory that you can read.');
  }
  const real = await realpath(cwd);
  const inside = allowedDirs?.some((allowed) => real === allowed || real.startsWith(withSeparator(allowed))) ?? true;
  if (!inside) {
    return problem(
      check,
      `${cwd} is outside CLAUDE_CODE_MCP_ALLOWED_DIRS, so a session without a cwd is refused`,
      'Start the server inside an allowed directory, or add this one to CLAUDE_CODE_MCP_ALLOWED_DIRS.',
    );
  }
  return ok(check, cwd);
}

/** Writes like the server will: permissions alone do not reveal full disks and read-only mounts. */
export async function checkStateDirectory({ stateDir, auditLog }: Settings): Promise<Finding> {
  const check = 'State directory';
  const directories = auditLog === 'off' ? [stateDir] : [stateDir, path.dirname(auditLog)];
  for (const directory of new Set(directories)) {
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await tryToWrite(directory);
    } catch (error) {
      return problem(
        check,
        `${directory} is not writable: ${messageOf(error)}`,
        'Make it writable, or choose others with CLAUDE_CODE_MCP_STATE_DIR and CLAUDE_CODE_MCP_AUDIT_LOG.',
      );
    }
  }
  return ok(check, stateDir);
}

/** Claude Code keeps its login and transcripts there. Not created here: that is up to Claude Code. */
export async function checkConfigDirectory(configDir: string): Promise<Finding> {
  const check = 'Claude Code directory';
  try {
    const existing = await nearestExisting(configDir);
    if (existing === configDir) await tryToWrite(configDir);
    else await access(existing, constants.W_OK);
    return ok(check, existing === configDir ? configDir : `${configDir}, created at the first start`);
  } catch (error) {
    return problem(
      check,
      `${configDir} is not writable: ${messageOf(error)}`,
      'Make it writable, or choose another with CLAUDE_CONFIG_DIR.',
    );
  }
}

async function tryToWrite(directory: string): Promise<void> {
  const probe = path.join(directory, `.doctor-${randomUUID()}`);
  await writeFile(probe, '');
  await rm(probe);
}

async function nearestExisting(directory: string): Promise<string> {
  try {
    const found = await stat(directory);
    if (!found.isDirectory()) throw new Error(`${directory} is not a directory`);
    return directory;
  } catch (error) {
    const parent = path.dirname(directory);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === directory) throw error;
    return nearestExisting(parent);
  }
}

function withSeparator(directory: string): string {
  return directory.endsWith(path.sep) ? directory : directory + path.sep;
}

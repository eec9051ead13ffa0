/** Project rules that Claude Code ignores because the project is not trusted. */

import { readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { projectTrust } from './project-trust.ts';

export interface ProjectRulesQuery {
  readonly cwd: string;
  readonly settingSources?: readonly string[] | undefined;
}

/**
 * A line for the caller if allow rules are ignored, with how to enable them. As in Claude Code 2.1.325:
 * `settings.local.json` is the person's own and needs no trust.
 */
export async function ignoredRulesWarning(
  { cwd, settingSources }: ProjectRulesQuery,
  { globalFile, configDir }: { globalFile: string; configDir: string },
): Promise<string | undefined> {
  if (settingSources?.includes('project') === false) return undefined;
  const folder = path.join(cwd, '.claude');
  // In the home directory they are the user's own.
  if ((await realPath(folder)) === (await realPath(configDir))) return undefined;
  if (!(await grantsAnything(path.join(folder, 'settings.json')))) return undefined;
  const { trust, key } = await projectTrust(cwd, globalFile);
  if (trust === 'own') return undefined;
  return (
    `Claude Code ignores the allow rules in .claude/settings.json: ${key} is not trusted yet. ` +
    `Run \`claude\` there once and accept the trust dialog, or set projects[${JSON.stringify(key)}].hasTrustDialogAccepted to true in ${globalFile}.`
  );
}

async function grantsAnything(file: string): Promise<boolean> {
  try {
    const { permissions } = JSON.parse(await readFile(file, 'utf8')) as {
      permissions?: { allow?: unknown; additionalDirectories?: unknown };
    };
    const grants = [permissions?.allow, permissions?.additionalDirectories];
    return grants.some((list) => Array.isArray(list) && list.length > 0);
  } catch {
    return false;
  }
}

function realPath(file: string): Promise<string> {
  return realpath(file).catch(() => path.resolve(file));
}

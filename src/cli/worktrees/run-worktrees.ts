import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../errors/errors.ts';
import { discardWork } from '../../workspace/worktree/discard.ts';
import { withRecord, type WorktreeHost } from '../../workspace/worktree/worktree-records.ts';
import { isDone, listWorktrees, type Unreadable, type WorktreeState } from '../../workspace/worktree/worktree-state.ts';
import { counted } from '../../text/columns.ts';
import { printable, printableLines } from '../../text/invisible.ts';
import { WORKTREES_ACTIONS } from '../commands.ts';
import { parseFlags, refuseWords, requireAction } from '../parse-flags.ts';
import { askYesNo, type Terminal } from '../terminal/terminal.ts';

/** A session may still be working in a worktree that changed recently. */
export const REST_MS = 60 * 60 * 1000;

export interface WorktreesContext {
  /** Undefined where there is no git. */
  readonly host: WorktreeHost | undefined;
  readonly terminal: Terminal;
  readonly now: number;
}

/** The `worktrees` command. Returns the exit code. */
export async function runWorktrees(rest: readonly string[], context: WorktreesContext): Promise<number> {
  const { host, terminal } = context;
  const asked = parse(rest);
  if (!host) {
    terminal.writeError('git was not found on the PATH; worktrees require it.\n');
    return 1;
  }
  await checkReadable(path.join(host.worktreesDir, '.records'));
  const listed = await listWorktrees(host);
  if (asked.action === 'prune') return prune(listed, { ...context, host }, asked.yes);
  terminal.write(asked.json ? `${JSON.stringify(listed.map(asJson), null, 2)}\n` : formatList(listed, host));
  return 0;
}

/** A directory that cannot be read must not pass for an empty one. */
async function checkReadable(directory: string): Promise<void> {
  await readdir(directory).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  });
}

function asJson(one: WorktreeState | Unreadable): object {
  return 'problem' in one ? one : { ...one, lastUsed: new Date(one.lastUsed).toISOString() };
}

function formatList(listed: readonly (WorktreeState | Unreadable)[], host: WorktreeHost): string {
  if (listed.length === 0) return printable`There are no worktrees in ${host.worktreesDir}.\n`;
  return listed
    .map((one) =>
      'problem' in one
        ? printable`${one.id}  ${one.problem}\n`
        : printable`${one.branch}  ${describeState(one)}\n    ${one.path}\n    of ${one.repository}, from ${one.base}\n`,
    )
    .join('');
}

function describeState(state: WorktreeState): string {
  if (state.state === 'unfinished') return 'interrupted; the next operation resumes it';
  const parts = [
    ...(state.state === 'missing' ? ['directory gone'] : []),
    ...(state.unmergedCommits > 0 ? [counted(state.unmergedCommits, 'unmerged commit')] : []),
    ...(state.looseHead === undefined ? [] : ['a commit that is not on its branch']),
    ...(state.dirty.length > 0 ? [counted(state.dirty.length, 'uncommitted file')] : []),
    ...(state.unreadable === undefined ? [] : [`cannot be read: ${state.unreadable}`]),
  ];
  if (!isDone(state)) return parts.join(', ');
  return [...parts, state.isMerged ? 'merged' : 'applied, branch kept'].join(', ');
}

/** Only what is merged or applied and was left alone for an hour. */
function prunable(listed: readonly (WorktreeState | Unreadable)[], now: number): readonly WorktreeState[] {
  return listed.filter(
    (one): one is WorktreeState =>
      !('problem' in one) && one.state !== 'unfinished' && isDone(one) && now - one.lastUsed > REST_MS,
  );
}

async function prune(
  listed: readonly (WorktreeState | Unreadable)[],
  { host, terminal, now }: WorktreesContext & { host: WorktreeHost },
  yes: boolean,
): Promise<number> {
  const chosen = prunable(listed, now);
  if (chosen.length === 0) {
    terminal.write(
      'Nothing to prune: only worktrees whose work is merged or applied, and that have been idle for an hour, are removed.\n',
    );
    return 0;
  }
  for (const one of chosen) terminal.write(printable`${one.branch}  ${describeState(one)}\n    ${one.path}\n`);
  if (!yes) {
    if (!terminal.canAsk) {
      terminal.writeError('Not an interactive terminal: pass --yes to remove them.\n');
      return 1;
    }
    if (!(await askYesNo(terminal, `Remove ${chosen.length === 1 ? 'it' : `these ${chosen.length}`}?`))) return 1;
  }
  let failures = 0;
  for (const { id, path } of chosen) {
    try {
      // Not by force: anything written since the listing prevents it.
      const { keptBranches } = await withRecord(host, id, (record) => discardWork(host, record));
      terminal.write(
        printable`Removed ${path}${keptBranches.length > 0 ? `; kept the branch ${keptBranches.join(', ')}` : ''}.\n`,
      );
    } catch (error) {
      failures++;
      terminal.writeError(printable`${path} stays: ` + printableLines(`${messageOf(error)}\n`));
    }
  }
  return failures === 0 ? 0 : 1;
}

type Asked = { readonly action: 'list'; readonly json: boolean } | { readonly action: 'prune'; readonly yes: boolean };

function parse([first = 'list', ...others]: readonly string[]): Asked {
  // `worktrees --json` lists.
  const rest = first.startsWith('-') ? [first, ...others] : others;
  const action = first.startsWith('-') ? 'list' : requireAction('worktrees', first, ['list', 'prune']);
  const command = `worktrees ${action}`;
  if (action === 'prune') {
    const { given, words } = parseFlags(command, WORKTREES_ACTIONS.prune.flags, rest);
    refuseWords(command, words);
    return { action, yes: given.yes === true };
  }
  const { given, words } = parseFlags(command, WORKTREES_ACTIONS.list.flags, rest);
  refuseWords(command, words);
  return { action, json: given.json === true };
}

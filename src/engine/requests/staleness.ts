import { createHash } from 'node:crypto';
import { DomainError } from '../../errors/errors.ts';
import type { Answer } from '../../schema/commands.ts';
import type { RequestRecord } from '../../schema/events.ts';
import type { Stale, StaleChange } from '../../schema/results.ts';
import { escapeInvisible } from '../../text/invisible.ts';
import { cutAt } from '../conversation/tool-summary.ts';
import { callTarget, checkedOut, directoryTarget, editedFile } from './call-target.ts';

/** What a request is compared with. */
export interface Present {
  /** Time of day. */
  readonly now: number;
  /** 0: never too old. */
  readonly staleAfterMs: number;
}

const MAX_NAME = 200;
const ABSENT = ': ENOENT';

/** What a request is about, as it is now; and why allowing it needs a second look, if it does. */
export async function examine(
  request: RequestRecord,
  { now, staleAfterMs }: Present,
): Promise<{ readonly target: string | undefined; readonly stale: Stale | undefined }> {
  const { ask, cwd = '', createdAt, target: before, branch: branchBefore } = request;
  const target = before === undefined ? undefined : await callTarget(ask.toolName, ask.input, cwd);
  const branch = branchBefore === undefined ? undefined : await checkedOut(cwd);
  const changes: StaleChange[] = [];
  const ageMs = Math.max(0, now - createdAt);
  if (staleAfterMs > 0 && ageMs > staleAfterMs) changes.push({ what: 'age', text: `it was asked ${ago(ageMs)} ago` });
  if (before !== undefined && target !== undefined && before !== target)
    changes.push(
      before.startsWith(await directoryTarget(cwd))
        ? { what: 'file', text: fileChange(editedFile(ask.toolName, ask.input) ?? '', before, target) }
        : { what: 'directory', text: `${shown(cwd)} is not the directory that it was` },
    );
  if (branchBefore !== branch)
    changes.push({
      what: 'branch',
      text: `${shown(branchBefore ?? '')} was checked out, now ${branch === undefined ? 'nothing is' : `${shown(branch)} is`}`,
    });
  if (changes.length === 0) return { target, stale: undefined };
  // Not the age itself: it grows between the question and the answer.
  const state = [request.id, changes.map(({ what }) => what), target, branch];
  const digest = createHash('sha256').update(JSON.stringify(state)).digest('hex').slice(0, 16);
  return { target, stale: { ageMs, changes, digest } };
}

/** Throws unless a permission may be given without a second look, or was given after one. */
export function checkConfirmed(stale: Stale | undefined, { decision, confirm }: Answer): void {
  if (decision === 'deny' || stale === undefined || stale.digest === confirm) return;
  const what = stale.changes.map(({ text }) => text).join('; ');
  throw new DomainError(
    'INVALID_ARGUMENT',
    `This request may no longer mean what it meant: ${what}. Look at it again; to allow it nevertheless, add confirm: "${stale.digest}".`,
  );
}

function fileChange(file: string, before: string, now: string): string {
  const name = shown(file);
  if (before.endsWith(ABSENT)) return `${name} did not exist, and now does`;
  return now.endsWith(ABSENT) ? `${name} no longer exists` : `${name} has changed`;
}

function shown(name: string): string {
  return escapeInvisible(cutAt(name, MAX_NAME));
}

function ago(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return `${Math.round(ms / 1000)} s`;
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

/** The checkouts that people work in, as opposed to the worktrees of sessions. */

import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorktreeRecord } from '../../schema/worktree-record.ts';
import { findCheckout, readHead, type Checkout } from '../git/checkout.ts';
import { withSparseness } from '../git/pinned-settings.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import { readStatus } from '../git/status.ts';
import { filesInTheWay, type CheckoutUpdate } from './check-out-files.ts';
import { nameSome, operationInProgress, refusal } from './commit-work.ts';
import { sealOf, type WorktreeHost } from './worktree-records.ts';

const LOCK_PATIENCE_MS = 2_000;

/** A seal over another checkout of the repository, which may or may not be sparse. */
export async function sealFor(host: WorktreeHost, record: WorktreeRecord, checkout: Checkout): Promise<Seal> {
  const seal = sealOf(host, record, checkout);
  return { ...seal, pinned: await withSparseness(host.git, checkout, seal.pinned) };
}

/** Files with uncommitted changes in the checkout that the session was started in. */
export async function uncommittedInOrigin(host: WorktreeHost, record: WorktreeRecord): Promise<string[]> {
  const checkout = await findCheckout(host.git, record.origin);
  return checkout ? uncommittedIn(host, record, checkout) : [];
}

export async function uncommittedIn(host: WorktreeHost, record: WorktreeRecord, checkout: Checkout): Promise<string[]> {
  const index = path.join(checkout.gitDir, 'index');
  const { commit: head } = await readHead(host.git, checkout.gitDir);
  const use = { head, objects: 'scratch', index, files: true } as const;
  const entries = await sealed(await sealFor(host, record, checkout), use, (git) => readStatus(git, checkout.workTree));
  return entries.map((entry) => entry.path);
}

/** Throws if updating the checkout would get in someone's way, or overwrite what is not committed. */
export async function requireRoom(
  host: WorktreeHost,
  record: WorktreeRecord,
  checkout: Checkout,
  update: Omit<CheckoutUpdate, 'index'>,
): Promise<void> {
  const operation = await operationInProgress(checkout.gitDir);
  if (operation !== undefined)
    throw refusal(`A ${operation} is in progress in ${checkout.workTree}; finish or abort it first.`);
  const index = path.join(checkout.gitDir, 'index');
  // A patch does not write this index, but whoever holds it is working on these files.
  if (!(await isGoneWithin(`${index}.lock`, LOCK_PATIENCE_MS)))
    throw refusal(
      `Another git process is running in ${checkout.workTree} (${index}.lock); wait for it, or remove the file if there is none.`,
    );
  const inTheWay = await filesInTheWay(await sealFor(host, record, checkout), { ...update, index });
  if (inTheWay.length > 0)
    throw refusal(
      `Files in ${checkout.workTree} have uncommitted changes that would be overwritten: ${nameSome(inTheWay)}. Commit, stash or move them first.`,
    );
}

async function isGoneWithin(file: string, ms: number): Promise<boolean> {
  for (const until = performance.now() + ms; ; await sleep(20)) {
    if (!(await lstat(file).catch(() => undefined))) return true;
    if (performance.now() > until) return false;
  }
}

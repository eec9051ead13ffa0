import type { RewindReport } from '../../driver/agent-process.ts';
import { DomainError } from '../../errors/errors.ts';
import type { EventBody } from '../../schema/events.ts';
import type { ActionOf } from '../../schema/own-action.ts';
import { stateOf, type FileState, type FileTrail } from './file-trail.ts';
import { keepFiles } from './kept-files.ts';
import type { Proposal } from '../requests/requests.ts';

export interface LeftFile {
  readonly path: string;
  readonly why: string;
}

export interface RewindOutcome {
  readonly dryRun: boolean;
  /** What was restored, or would be. */
  readonly files: readonly string[];
  readonly left: readonly LeftFile[];
  /** Only if all files are restored: Claude Code counts them together. */
  readonly lines?: { readonly insertions: number; readonly deletions: number } | undefined;
}

export function rewindEvent({ dryRun, files, left, lines }: RewindOutcome): EventBody {
  return { kind: 'rewind', dryRun, files: [...files], left: [...left], ...(lines && { lines: { ...lines } }) };
}

export interface RewindOrder {
  readonly toUserMessage: string;
  readonly dryRun: boolean;
  /** Nothing but these, and only in this state. */
  readonly allowed?: ActionOf<'rewind'>['files'];
  /** Where files that must be left alone are copied in the meantime. */
  readonly copiesDir: string;
}

/** What a rewind needs from its session. */
export interface RewindScene {
  readonly files: FileTrail;
  rewindFiles(toUserMessage: string, dryRun: boolean): Promise<RewindReport>;
  /** Runs this while no message can be delivered. Throws if the session has started working again. */
  exclusively<T>(action: () => Promise<T>): Promise<T>;
}

/**
 * Restores files, except those that someone else has changed since; reports what it did, not what it was asked to do.
 */
export async function rewind(scene: RewindScene, order: RewindOrder): Promise<RewindOutcome> {
  const plan = await preview(scene, order.toUserMessage);
  if (order.dryRun || plan.files.length === 0) return { ...plan, dryRun: order.dryRun };
  const allowed = order.allowed ?? (await withStates(plan.files));
  return scene.exclusively(() => perform(scene, order, new Map(allowed.map(({ path, state }) => [path, state]))));
}

async function withStates(files: readonly string[]): Promise<ActionOf<'rewind'>['files']> {
  return Promise.all(files.map(async (path) => ({ path, state: (await stateOf(path)).bytes })));
}

/** What a person is asked: the files as they are now. */
export async function proposeRewind(toUserMessage: string, { files, left }: RewindOutcome): Promise<Proposal> {
  return {
    opening: `The caller wants to rewind ${String(files.length)} file(s) to what they were before an earlier message.`,
    input: { files, ...(left.length > 0 && { leftAlone: left.map(({ path }) => path) }), toUserMessage },
    action: { action: 'rewind', toUserMessage, files: await withStates(files) },
  };
}

type Plan = Omit<RewindOutcome, 'dryRun'>;

async function preview(scene: RewindScene, toUserMessage: string): Promise<Plan> {
  // Only a dry run lists the files (Claude Code 2.1.325).
  const { filesChanged = [], insertions = 0, deletions = 0 } = checked(await scene.rewindFiles(toUserMessage, true));
  const files: string[] = [];
  const left: LeftFile[] = [];
  for (const file of filesChanged) {
    const why = await scene.files.whyForeign(file, toUserMessage);
    if (why === undefined) files.push(file);
    else left.push({ path: file, why });
  }
  return { files, left, lines: left.length === 0 ? { insertions, deletions } : undefined };
}

/** Time may have passed since it was allowed: files that have changed since, or were not listed, are left alone. */
async function perform(
  scene: RewindScene,
  order: RewindOrder,
  allowed: ReadonlyMap<string, string>,
): Promise<RewindOutcome> {
  const { toUserMessage, copiesDir } = order;
  const now = await preview(scene, toUserMessage);
  const left = [...now.left];
  const wanted: string[] = [];
  const before: FileState[] = [];
  for (const file of now.files) {
    const state = await stateOf(file);
    if (!allowed.has(file)) left.push({ path: file, why: 'not part of what was allowed' });
    else if (allowed.get(file) !== state.bytes) left.push({ path: file, why: 'changed since it was shown' });
    else {
      wanted.push(file);
      before.push(state);
    }
  }
  const foreign = left.map(({ path }) => path);
  if (wanted.length > 0)
    await keepFiles(copiesDir, foreign, async () => checked(await scene.rewindFiles(toUserMessage, false)));
  const files: string[] = [];
  for (const [index, file] of wanted.entries()) {
    if ((await stateOf(file)).bytes === before[index]?.bytes) {
      left.push({ path: file, why: 'Claude Code did not restore it: it is a link, or its copy is missing' });
      continue;
    }
    files.push(file);
    await scene.files.putBack(file);
  }
  return { dryRun: false, files, left, lines: left.length === 0 ? now.lines : undefined };
}

function checked(report: RewindReport): RewindReport {
  if (report.canRewind) return report;
  throw new DomainError('INVALID_ARGUMENT', `Cannot rewind: ${report.error ?? 'no reason given'}`);
}

export function describeRewind({ dryRun, files, left, lines }: RewindOutcome): string {
  const counts = lines ? ` (+${String(lines.insertions)} -${String(lines.deletions)})` : '';
  const put = `${dryRun ? 'Would restore' : 'Restored'} ${String(files.length)} file(s): ${files.join(', ') || 'none'}${counts}.`;
  if (left.length === 0) return put;
  const named = left.map(({ path, why }) => `${path} (${why})`).join(', ');
  return `${put} ${dryRun ? 'Would leave' : 'Left'} ${String(left.length)} unchanged: ${named}.`;
}

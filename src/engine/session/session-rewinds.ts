import { DomainError } from '../../errors/errors.ts';
import { deferred } from '../clock.ts';
import { FileTrail, stateOf, type FileState } from './file-trail.ts';
import type { ActionOf } from '../../schema/own-action.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import type { Asked, Performed, Since } from '../requests/own-actions.ts';
import { rewindCopiesDir, keepFiles } from './kept-files.ts';
import type { EngineParts, SessionHost } from './session-host.ts';
import { busy } from './session-errors.ts';
import type { Session } from './session.ts';
import type { RewindReport } from '../../driver/agent-process.ts';
import type { EventBody } from '../../schema/events.ts';
import type { Proposal } from '../requests/requests.ts';

/** The rewinds of one session. They need its process although the conversation is at rest. */
export class SessionRewinds {
  readonly #session: Session;
  #underWay = 0;

  constructor(session: Session) {
    this.#session = session;
  }

  get underWay(): boolean {
    return this.#underWay > 0;
  }

  async rewind(order: RewindOrder): Promise<RewindOutcome> {
    if (!this.#session.leavesFilesAlone) throw busy(this.#session);
    this.#underWay++;
    const { conversation, services, process } = this.#session;
    conversation.times.active();
    try {
      await process.settled();
      if (!process.live) await this.#session.launch(undefined, 'again');
      this.#checkIsHere(order.toUserMessage);
      const outcome = await rewind(this.#scene(), order);
      if (!order.dryRun) conversation.log.append(rewindEvent(outcome), services.clock.wallTime());
      return outcome;
    } finally {
      this.#underWay--;
    }
  }

  #checkIsHere(toUserMessage: string): void {
    const { launches, conversation } = this.#session;
    const { arrivedAt } = launches;
    if (arrivedAt === undefined) return;
    const isHere = conversation.log
      .from(arrivedAt)
      .events.some(({ body }) => body.kind === 'prompt' && body.messageId === toUserMessage);
    if (isHere) return;
    throw new DomainError(
      'INVALID_ARGUMENT',
      'Checkpoints do not move between machines: this session came from another one, and only changes made here can be rewound.',
    );
  }

  #scene(): RewindScene {
    return {
      // A trail that saw nothing leaves every file alone.
      files: this.#session.conversation.files ?? new FileTrail(),
      rewindFiles: async (toUserMessage, dryRun) => {
        const { live } = this.#session.process;
        if (!live) throw new DomainError('INTERNAL', 'Claude Code has ended, or could not be started; try again.');
        return live.rewindFiles(toUserMessage, dryRun);
      },
      exclusively: async (action) => {
        const done = deferred<Awaited<ReturnType<typeof action>>>();
        await this.#session.oneReplyAtATime(async () => {
          if (!this.#session.leavesFilesAlone) throw busy(this.#session);
          done.resolve(await action());
        });
        return done.promise;
      },
    };
  }
}

/** Rewinds as callers ask for them, and as people allow them. */
export class Rewinds {
  readonly #parts: EngineParts;
  readonly #host: SessionHost;
  /** Whether the caller may decide alone, without asking a person. */
  readonly #decides: (session: Session, by: ConnectedClient | undefined) => boolean;

  constructor(parts: EngineParts, host: SessionHost, decides: (session: Session, by?: ConnectedClient) => boolean) {
    this.#parts = parts;
    this.#host = host;
    this.#decides = decides;
  }

  async rewind(
    session: Session,
    toUserMessage: string,
    dryRun: boolean,
    by?: ConnectedClient,
  ): Promise<RewindOutcome | Asked> {
    (by?.rules ?? this.#parts.rules).checkMayDrive(session);
    const { actions } = this.#parts;
    const mustAsk = !dryRun && !this.#decides(session, by);
    if (mustAsk) actions.checkCanAsk(session);
    const outcome = await this.#carryOut(session, { toUserMessage, dryRun: dryRun || mustAsk });
    if (!mustAsk || outcome.files.length === 0) return { ...outcome, dryRun };
    return actions.ask(session, await proposeRewind(toUserMessage, outcome));
  }

  /** Does what a person has allowed. */
  async perform(session: Session, action: ActionOf<'rewind'>, since: Since): Promise<Performed> {
    const { toUserMessage, files: allowed } = action;
    if (since === 'restart') return rewindUnknown(action);
    // The hub's rules may have been narrowed since it was asked for.
    this.#parts.rules.checkMayDrive(session);
    const outcome = await this.#carryOut(session, { toUserMessage, dryRun: false, allowed });
    return { outcome: 'rewound', message: describeRewind(outcome) };
  }

  async #carryOut(session: Session, asked: Omit<RewindOrder, 'copiesDir'>): Promise<RewindOutcome> {
    if (session.options.enableFileCheckpointing !== true) {
      throw new DomainError(
        'INVALID_ARGUMENT',
        'The session has no checkpoints; start it with advanced.enableFileCheckpointing.',
      );
    }
    this.#host.checkDirectories(session);
    const order: RewindOrder = { ...asked, copiesDir: rewindCopiesDir(this.#parts.settings.stateDir) };
    return session.hasProcess
      ? session.rewind(order)
      : this.#parts.registry.withPlace((place) => {
          place.session = session;
          return session.rewind(order);
        });
  }
}

/** Nothing tells how far Claude Code got with it. */
function rewindUnknown({ files }: ActionOf<'rewind'>): Performed {
  const names = files.map(({ path }) => path).join(', ');
  return {
    outcome: 'unknown',
    message: `The outcome is unknown: the server stopped while it restored files. Check ${names}; a rewind with dryRun: true lists what is not restored.`,
  };
}

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

function rewindEvent({ dryRun, files, left, lines }: RewindOutcome): EventBody {
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
interface RewindScene {
  readonly files: FileTrail;
  rewindFiles(toUserMessage: string, dryRun: boolean): Promise<RewindReport>;
  /** Runs this while no message can be delivered. Throws if the session has started working again. */
  exclusively<T>(action: () => Promise<T>): Promise<T>;
}

/**
 * Restores files, except those that someone else has changed since; reports what it did, not what it was asked to do.
 */
async function rewind(scene: RewindScene, order: RewindOrder): Promise<RewindOutcome> {
  const plan = await preview(scene, order.toUserMessage);
  if (order.dryRun || plan.files.length === 0) return { ...plan, dryRun: order.dryRun };
  const allowed = order.allowed ?? (await withStates(plan.files));
  return scene.exclusively(() => perform(scene, order, new Map(allowed.map(({ path, state }) => [path, state]))));
}

async function withStates(files: readonly string[]): Promise<ActionOf<'rewind'>['files']> {
  return Promise.all(files.map(async (path) => ({ path, state: (await stateOf(path)).bytes })));
}

/** What a person is asked: the files as they are now. */
async function proposeRewind(toUserMessage: string, { files, left }: RewindOutcome): Promise<Proposal> {
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

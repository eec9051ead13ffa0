import { DomainError } from '../../errors/errors.ts';
import { deferred } from '../clock.ts';
import { FileTrail } from './file-trail.ts';
import type { ActionOf } from '../../schema/own-action.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import type { Asked, Performed, Since } from '../requests/own-actions.ts';
import { rewindCopiesDir } from './kept-files.ts';
import {
  describeRewind,
  proposeRewind,
  rewind,
  rewindEvent,
  type RewindOrder,
  type RewindOutcome,
  type RewindScene,
} from './rewind.ts';
import type { EngineParts, SessionHost } from './session-host.ts';
import { busy } from './session-errors.ts';
import type { Session } from './session.ts';

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

import { DomainError } from '../../errors/errors.ts';
import { deferred } from '../deferred.ts';
import { FileTrail } from './file-trail.ts';
import { rewind, rewindEvent, type RewindOrder, type RewindOutcome, type RewindScene } from './rewind.ts';
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

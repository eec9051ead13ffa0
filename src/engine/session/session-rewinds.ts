import { DomainError } from '../../errors/errors.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { deferred } from '../deferred.ts';
import { FileTrail } from './file-trail.ts';
import type { ProcessHolder } from '../process/process-holder.ts';
import { rewind, rewindEvent, type RewindOrder, type RewindOutcome, type RewindScene } from './rewind.ts';
import { busy } from './session-errors.ts';
import type { Session } from './session.ts';

/** The process that rewinds, of the session whose files they are. */
export interface RewindProcess {
  /** Starts one unless it is running. */
  bringUp(): Promise<void>;
  readonly holder: ProcessHolder;
  /** The first event since it came from another machine, if it did. */
  arrivedAt(): number | undefined;
}

/** The rewinds of one session. They need its process although the conversation is at rest. */
export class SessionRewinds {
  readonly #session: Session;
  readonly #conversation: Conversation;
  readonly #process: RewindProcess;
  #underWay = 0;

  constructor(session: Session, conversation: Conversation, process: RewindProcess) {
    this.#session = session;
    this.#conversation = conversation;
    this.#process = process;
  }

  get underWay(): boolean {
    return this.#underWay > 0;
  }

  async rewind(order: RewindOrder): Promise<RewindOutcome> {
    if (!this.#session.leavesFilesAlone) throw busy(this.#session);
    this.#underWay++;
    this.#conversation.times.active();
    try {
      await this.#process.bringUp();
      this.#checkIsHere(order.toUserMessage);
      const outcome = await rewind(this.#scene(), order);
      if (!order.dryRun) this.#session.log.append(rewindEvent(outcome), this.#session.now);
      return outcome;
    } finally {
      this.#underWay--;
    }
  }

  #checkIsHere(toUserMessage: string): void {
    const arrivedAt = this.#process.arrivedAt();
    if (arrivedAt === undefined) return;
    const isHere = this.#session.log
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
      files: this.#conversation.files ?? new FileTrail(),
      rewindFiles: async (toUserMessage, dryRun) => {
        const { live } = this.#process.holder;
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

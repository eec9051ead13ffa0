import type { Translation } from '../../driver/translate.ts';
import type { EventBody } from '../../schema/events.ts';
import type { ConversationEvent } from '../conversation/conversation-types.ts';
import { recordOf } from '../requests/requests.ts';
import { TranscriptCheck } from '../process/transcript-check.ts';
import type { SessionServices } from './session-types.ts';
import type { Session } from './session.ts';

const NOT_WRITTEN =
  'Claude Code has not written the last turn to its transcript, so this session cannot be resumed once its process ends. ' +
  'Free some space on the disk of its configuration directory, then have the work continued in a new session.';

/** Tells the engine, its observers and the work report what happens in the conversation of a session. */
export class SessionObserver {
  readonly #session: Session;
  readonly #services: SessionServices;
  readonly #transcriptCheck: TranscriptCheck;

  constructor(session: Session, services: SessionServices) {
    this.#session = session;
    this.#services = services;
    this.#transcriptCheck = new TranscriptCheck(
      { id: session.id, turnNotWritten: () => this.#turnNotWritten() },
      services,
    );
  }

  heard(translation: Translation): void {
    const { work, conversation } = this.#session;
    if (callsTool(translation.event?.body)) work.toolUsed();
    conversation.heard(translation);
  }

  told(event: ConversationEvent): void {
    const session = this.#session;
    const { notices, work, process } = session;
    if (session.hasLeft) return;
    switch (event.kind) {
      case 'changed':
        return notices.tell({ kind: 'changed' });
      case 'tools':
        return this.#services.onTools(event.tools, process.live);
      case 'opened':
        return this.#services.onOpened(session, event.request);
      case 'delivered':
        this.#transcriptCheck.delivered(event.messageId);
        return notices.tell(event);
      case 'event':
      case 'message':
        return notices.tell(event);
      case 'asked':
        notices.tell({ kind: 'request', request: recordOf(event.request) });
        return this.#services.onRequest(session, event.request);
      case 'settled':
        notices.tell({ ...event, request: recordOf(event.request) });
        return this.#services.onSettled(session, event.request, event.outcome);
      case 'ruled_out':
        return this.#services.onRuledOut(session, event.use);
      case 'began':
        return work.turnBegins();
      case 'decided':
        return this.#services.onDecided?.(session);
      case 'allowed':
        return this.#services.onAllowed?.(session, event.underWay, event.since);
      case 'granted':
        return this.#services.onGranted?.(session, event.grant);
      case 'grant_ended':
        return this.#services.onGrantEnded?.(session, event.grant, event.end);
      case 'rested':
        return this.rested();
    }
  }

  rested(): void {
    const session = this.#session;
    const { conversation, work, notices } = session;
    const { state, result, activity, acted } = conversation;
    if (state === 'idle' && session.persists) this.#transcriptCheck.turnEnded();
    const turn = { state, errorSubtype: result?.errorSubtype, toolUses: activity.callToolUses };
    const { problems } = activity;
    work.turnEnds({ calls: activity.log.ofTurn, all: activity.log.all, acted }, () => {
      this.#services.onRest(session, { ...turn, work: work.short(problems) });
      notices.tell({ kind: 'changed' });
    });
  }

  /** Its process was closed at rest. */
  parked(): void {
    this.#transcriptCheck.processEnded();
    this.#session.conversation.log.pack();
    this.#session.conversation.activity.pack();
  }

  /** Claude Code has not written its last turn to its transcript. */
  #turnNotWritten(): void {
    const { conversation, notices } = this.#session;
    conversation.log.append({ kind: 'writes_lost', name: NOT_WRITTEN }, this.#services.clock.wallTime());
    conversation.activity.note(NOT_WRITTEN);
    notices.tell({ kind: 'changed' });
  }
}

function callsTool(body: EventBody | undefined): boolean {
  return body?.kind === 'message' && body.blocks.some(({ kind }) => kind === 'tool_call');
}

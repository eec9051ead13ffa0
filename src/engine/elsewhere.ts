/** Sessions that other hubs on the same store run: how they are shown here, and how operations reach them. */

import type { Settings } from '../config/load-settings.ts';
import type { StoredSession } from '../schema/store.ts';
import type { ApplyOptions, ApplyOutcome } from '../workspace/apply.ts';
import type { DiffPage, PageOptions } from '../workspace/diff.ts';
import type { DiscardOutcome } from '../workspace/discard.ts';
import type { Answer } from './answer.ts';
import type { Asked } from './own-actions.ts';
import type { Principal } from './principal.ts';
import type { RewindOutcome } from './rewind.ts';
import type { RecalledSession } from './services.ts';
import type { ReplyRequest, StartRequest } from './start-request.ts';

/**
 * An operation on a session, as data: whichever hub receives the call, the one that runs the session carries it out.
 */
export type Order =
  | { readonly kind: 'start'; readonly request: Omit<StartRequest, 'by' | 'id'> }
  | { readonly kind: 'reply'; readonly request: Omit<ReplyRequest, 'by' | 'sessionId'> }
  | { readonly kind: 'respond'; readonly requestId: string; readonly answer: Answer }
  /** A person's answer in a form shown elsewhere. */
  | { readonly kind: 'form'; readonly requestId: string; readonly answer: Answer }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'rewind'; readonly toUserMessage: string; readonly dryRun: boolean }
  | { readonly kind: 'diff'; readonly page: PageOptions }
  | { readonly kind: 'apply'; readonly options: ApplyOptions }
  | { readonly kind: 'discard'; readonly options: { readonly force: boolean } };

/** What comes back, as data. */
export interface OrderOutcomes {
  start: DrivenSession;
  reply: DrivenSession;
  respond: DrivenSession;
  form: DrivenSession;
  interrupt: boolean;
  cancel: boolean;
  rewind: RewindOutcome | Asked;
  diff: DiffPage;
  apply: ApplyOutcome | Asked;
  discard: DiscardOutcome | Asked;
}

/** The session that an order was about or created, and what the caller should know. */
export interface DrivenSession {
  readonly sessionId: string;
  readonly warnings: readonly string[];
}

/** Who gave an order, and under which rules: they apply wherever it is carried out. */
export interface OrderedBy {
  readonly principal: Principal;
  readonly settings: Settings;
}

/** What is stored about a session that runs elsewhere. */
export interface SeenElsewhere extends RecalledSession {
  /** Position of its last change in the feed. */
  readonly position: number;
  /** Its hub is unavailable and it can move, but not to this hub. */
  readonly isForOthers: boolean;
}

/** What was seen of it earlier. */
export interface Known {
  readonly lastEventId: number;
  readonly position: number;
  readonly hub: string;
  /** This hub may take it over when the other one is gone. */
  readonly movable: boolean;
}

export type CanRun = (row: StoredSession) => Promise<boolean>;

export interface OtherHubs {
  /**
   * A session that runs elsewhere and cannot be taken over; `canRun` tells whether this hub could continue it. The
   * events are those after `lastEventId`; nothing has changed if its position is still `position`.
   */
  see(id: string, canRun: CanRun, known?: Known): Promise<SeenElsewhere | 'unchanged' | undefined>;
  /** Which of these have changed since, or can be taken over now. */
  changed(known: ReadonlyMap<string, Known>): Promise<string[]>;
  /** Calls back when something was stored. */
  onStored(listener: () => void): () => void;
  /** Has an order carried out, once, by the hub that runs the session, last seen on `hub`. */
  carryOut<Kind extends Exclude<Order['kind'], 'start'>>(
    session: { readonly id: string; readonly hub: string },
    order: Extract<Order, { kind: Kind }>,
    by: OrderedBy,
  ): Promise<OrderOutcomes[Kind]>;
  /** Starts a movable session on the hub with the most free slots. Undefined: start it here. */
  start(request: Omit<StartRequest, 'by' | 'id'>, by: OrderedBy): Promise<DrivenSession | undefined>;
}

import type { RequestRecord } from '../../schema/events.ts';
import type { ActionUnderWay, LastAction } from '../../schema/own-action.ts';
import { type Clock, type Instant, msBetween } from '../clock.ts';
import type { SessionNotice } from '../notices.ts';
import type { Grant, GrantEnd } from '../requests/grants.ts';
import type { Since } from '../requests/own-actions.ts';
import type { OpenRequest, Outcome } from '../requests/requests.ts';
import type { SessionRules } from '../rules/standing/session-rules.ts';
import type { ToolUse } from './activity.ts';
import type { ReportsSeed, RestoredReports } from './agent-reports.ts';
import type { Message } from './outbox.ts';
import type { StoredStanding } from './state.ts';

/** Times of day. */
interface RestoredTimes {
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly archivedAt?: number | undefined;
}

/** When things happened to a session: the time of day for display, monotonic spans for decisions. */
export class SessionTimes {
  #createdAt: number;
  readonly #clock: Clock;
  #lastActiveAt: number;
  #archivedAt: number | undefined;
  #activeSince: Instant;
  #workingSince: Instant;
  /** The last sign of life from Claude Code since the call started. */
  #lastHeard: Instant | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#createdAt = clock.wallTime();
    this.#lastActiveAt = this.#createdAt;
    this.#activeSince = clock.instant();
    this.#workingSince = this.#activeSince;
  }

  /** For a session from another process. Its idle time is counted from now. */
  restore({ createdAt, lastActiveAt, archivedAt }: RestoredTimes): void {
    this.#createdAt = createdAt;
    this.#lastActiveAt = lastActiveAt;
    this.#archivedAt = archivedAt;
  }

  /** Time of day. */
  get createdAt(): number {
    return this.#createdAt;
  }

  /** Time of day. */
  get lastActiveAt(): number {
    return this.#lastActiveAt;
  }

  /** Time of day, if it was put away and nothing was asked of it since. */
  get archivedAt(): number | undefined {
    return this.#archivedAt;
  }

  /** Since something last happened; used for parking and dropping. */
  get restedMs(): number {
    return this.#msSince(this.#activeSince);
  }

  /** Since the call began. */
  get workedMs(): number {
    return this.#msSince(this.#workingSince);
  }

  get quietMs(): number {
    return Math.round(this.#msSince(this.#lastHeard ?? this.#workingSince));
  }

  /** Nothing heard from Claude Code since the call started. */
  get isSilent(): boolean {
    return this.#lastHeard === undefined;
  }

  /** Idle time is counted from here. */
  active(): void {
    this.#lastActiveAt = this.#clock.wallTime();
    this.#activeSince = this.#clock.instant();
  }

  /** Returns whether that changed anything. */
  archive(archived: boolean): boolean {
    if ((this.#archivedAt !== undefined) === archived) return false;
    this.#archivedAt = archived ? this.#clock.wallTime() : undefined;
    return true;
  }

  callBegins(): void {
    this.active();
    this.#archivedAt = undefined;
    this.#workingSince = this.#activeSince;
    this.#lastHeard = undefined;
  }

  /** A working session is active for as long as it is heard from; output at rest does not extend the idle time. */
  heard({ atRest }: { readonly atRest: boolean }): void {
    this.#lastHeard = this.#clock.instant();
    if (!atRest) this.#lastActiveAt = this.#clock.wallTime();
  }

  #msSince(instant: Instant): number {
    return msBetween(instant, this.#clock.instant());
  }
}

/** What a conversation reports as it proceeds. */
export type ConversationEvent =
  /** Something that a waiting call may have been waiting for. */
  | { kind: 'changed' }
  | Extract<SessionNotice, { kind: 'event' | 'message' | 'delivered' }>
  | { kind: 'settled'; request: OpenRequest; outcome: Outcome }
  /** Everything that was asked is decided, but there is no process to tell. */
  | { kind: 'decided' }
  /** One of the server's own requests was allowed, now or in an earlier process that did not finish it. */
  | { kind: 'allowed'; underWay: ActionUnderWay; since: Since }
  | { kind: 'granted'; grant: Grant }
  | { kind: 'grant_ended'; grant: Grant; end: GrantEnd }
  | { kind: 'tools'; tools: string[] }
  /** Every request, including one that a rule is about to refuse. */
  | { kind: 'opened'; request: OpenRequest }
  /** A request that needs an answer. */
  | { kind: 'asked'; request: OpenRequest }
  /** A standing rule made Claude Code refuse a call without asking. */
  | { kind: 'ruled_out'; use: ToolUse }
  /** A turn begins after a rest. */
  | { kind: 'began' }
  | { kind: 'rested' };

export interface ConversationSeed extends ReportsSeed {
  readonly id: string;
  readonly permissionTimeoutMs: number;
  /** Requests outlive the process that made them. */
  readonly keepsRequests: boolean;
  readonly restored?: RestoredConversation | undefined;
}

/** What is left of a conversation from an earlier process. */
export interface RestoredConversation extends StoredStanding, RestoredTimes {
  readonly reports: RestoredReports;
  readonly topic: string;
  readonly requests: readonly RequestRecord[];
  readonly grants: readonly Grant[];
  readonly handover: readonly string[];
  readonly actionUnderWay: ActionUnderWay | undefined;
  readonly lastAction: LastAction | undefined;
  /** Messages that Claude Code was never given. */
  readonly undelivered: readonly Message[];
}

export interface ConversationServices {
  readonly clock: Clock;
  readonly tell: (event: ConversationEvent) => void;
  /** Whether the current rules would still allow it. */
  readonly holds?: (grant: Grant) => boolean;
  /** Standing rules, as far as they concern this session. */
  readonly rules?: SessionRules | undefined;
  readonly debug: (line: string) => void;
}

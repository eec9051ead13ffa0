import type { RequestRecord } from '../../schema/events.ts';
import type { ActionUnderWay, LastAction } from '../../schema/own-action.ts';
import type { ReportsSeed, RestoredReports } from './agent-reports.ts';
import type { Clock } from '../clock.ts';
import type { Grant, GrantEnd } from '../requests/grants.ts';
import type { SessionNotice } from '../notices.ts';
import type { Message } from './outbox.ts';
import type { OpenRequest } from '../requests/requests.ts';
import type { SessionRules } from '../rules/standing/session-rules.ts';
import type { RestoredTimes } from './session-times.ts';
import type { Stood } from './standing.ts';

/** What a conversation reports as it proceeds. */
export type ConversationEvent =
  /** Something that a waiting call may have been waiting for. */
  | { kind: 'changed' }
  | Extract<SessionNotice, { kind: 'event' | 'message' | 'delivered' | 'settled' }>
  /** Everything that was asked is decided, but there is no process to tell. */
  | { kind: 'decided' }
  /** One of the server's own requests was allowed, now or in an earlier process that did not finish it. */
  | { kind: 'allowed'; underWay: ActionUnderWay; since: 'answer' | 'restart' }
  | { kind: 'granted'; grant: Grant }
  | { kind: 'grant_ended'; grant: Grant; end: GrantEnd }
  | { kind: 'tools'; tools: string[] }
  /** Every request, including one that a rule is about to refuse. */
  | { kind: 'opened'; request: OpenRequest }
  /** A request that needs an answer. */
  | { kind: 'asked'; request: OpenRequest }
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
export interface RestoredConversation extends Stood, RestoredTimes {
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

import type { AgentLaunch, AgentListener, AgentProcess } from '../../driver/agent-process.ts';
import type { Decision } from '../../driver/permission-ask.ts';
import type { ActionUnderWay } from '../../schema/own-action.ts';
import type { PermissionMode, SessionOptions } from '../../schema/session-options.ts';
import type { Work } from '../../schema/results.ts';
import type { ToolUse } from '../conversation/activity.ts';
import type { SessionLock } from '../../transcripts/session-lock.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import type { Clock, Instant } from '../clock.ts';
import type { RestoredConversation } from '../conversation/conversation-types.ts';
import type { Gate } from '../gate.ts';
import type { Grant, GrantEnd } from '../requests/grants.ts';
import type { EventLogLimits } from '../conversation/event-log.ts';
import type { SessionNotice } from '../notices.ts';
import type { Since } from '../requests/own-actions.ts';
import type { Principal } from '../rules/access.ts';
import type { OpenRequest, Outcome } from '../requests/requests.ts';
import type { Rules } from '../rules/rules.ts';
import type { AdoptableRun, StandingRules } from '../ports.ts';
import type { Session } from './session.ts';
import type { OpenedWorkspace, WorkWords } from './session-work.ts';
import type { State } from '../conversation/state.ts';
import type { Sums } from '../conversation/totals.ts';

export type SessionOrigin = AgentLaunch['history'];

export interface SessionServices {
  clock: Clock;
  /** Decisions that people have made in advance. */
  standingRules?: StandingRules | undefined;
  eventLimits: EventLogLimits;
  launch(
    launch: Pick<AgentLaunch, 'sessionId' | 'history' | 'options'>,
    listener: AgentListener,
  ): Promise<AgentProcess>;
  /** Continues a process that an earlier server started. */
  adopt?: (
    run: AdoptableRun,
    launch: Pick<AgentLaunch, 'sessionId' | 'history' | 'options'>,
    listener: AgentListener,
  ) => Promise<AgentProcess>;
  /** What was decided on a request, if it was stored. */
  decisionOn?(requestId: string): Promise<Decision | undefined>;
  /** What a resumed or forked process counts as the cost so far. */
  recordedCostUsd(sessionId: string): Promise<number>;
  /** What leaves the session passes it. */
  gate: Gate;
  /** Resolves when everything that has happened so far is stored, where there is a store. */
  stored?(): Promise<void>;
  /**
   * Before a transcript is resumed or forked. Returns whether it had to be fetched from where other machines wrote it.
   */
  fetchTranscript?(sessionId: string): Promise<boolean>;
  /** Keeps other servers away from a transcript; refused if another process has it open or is about to. */
  lockTranscript(sessionId: string): Promise<SessionLock>;
  /** Whether a process that was killed left a conversation to resume; if not, its id can be reused. */
  salvageTranscript(sessionId: string): Promise<boolean>;
  isInTranscript(sessionId: string, messageId: string): Promise<boolean>;
  /** Whether Claude Code has written this message, or at least something in the same project since then. */
  isWritten(sessionId: string, messageId: string, since: number): Promise<boolean>;
  /** Every request, including one that a rule is about to refuse. */
  onOpened(session: Session, request: OpenRequest): void;
  /** A request that needs an answer. */
  onRequest(session: Session, request: OpenRequest): void;
  onSettled(session: Session, request: OpenRequest, outcome: Outcome): void;
  /** A standing rule made Claude Code refuse a call without asking. */
  onRuledOut(session: Session, use: ToolUse): void;
  /** Where the session works; without one there is no report of files. */
  openWorkspace?: (session: Session) => Promise<OpenedWorkspace>;
  /** What a report needs while the workspace is not open. */
  loadWords?: () => Promise<WorkWords>;
  /** Whether another session worked in this checkout at some time since. */
  othersWorked?: (session: Session, root: string, since: Instant) => boolean;
  onRest(session: Session, rest: RestedTurn): void;
  /** Requests outlive the processes that made them. */
  keepsRequests?: boolean;
  /** Where sessions work that another hub can take over. */
  sharedWorkspace?: string | undefined;
  /** Everything that was asked is decided, and a process has to be told. */
  onDecided?(session: Session): void;
  /** A person has allowed an action of the server's own. */
  onAllowed?(session: Session, underWay: ActionUnderWay, since: Since): void;
  onGranted?(session: Session, grant: Grant): void;
  onGrantEnded?(session: Session, grant: Grant, end: GrantEnd): void;
  /** What its process has reported at its start. */
  onTools(tools: string[], process: AgentProcess | undefined): void;
  onNotice?(session: Session, notice: SessionNotice): void;
  readonly debug: (line: string) => void;
}

/** A finished turn, as recorded in the audit log. */
export interface RestedTurn {
  readonly state: State;
  readonly errorSubtype: string | undefined;
  readonly toolUses: readonly ToolUse[];
  readonly work: Work | undefined;
}

export interface SessionSeed {
  id: string;
  owner: Principal;
  /** The connection it was started on. */
  client?: ConnectedClient | undefined;
  /** The rules it is started under. */
  rules: Rules;
  options: SessionOptions;
  /** Where the first process takes its history from. */
  origin: SessionOrigin;
  permissionTimeoutMs: number;
  initTimeoutMs: number;
  inherited?: Sums;
  /** The worktree that was made for it. */
  worktree?: OpenedWorkspace | undefined;
  /** The sessions of the same start, in order, if it is one of several attempts. */
  attempts?: readonly string[] | undefined;
  /** Shows text while it is written. */
  streamsText?: boolean | undefined;
  /** Of a session that an earlier process of this server had. */
  restored?: RestoredSession | undefined;
}

export interface RestoredSession extends RestoredConversation {
  readonly hasAnswered: boolean;
  readonly work: Work | undefined;
  /** Its last turn has ended, but what it did is not known. */
  readonly lacksReport: boolean;
  readonly movable: boolean;
  readonly arrivedAt: number | undefined;
  /** What must be provided again before it can run: variables, and options that are never stored. */
  readonly missing: readonly string[];
}

export interface Cancellation {
  at: number;
  reason: string;
  source: string;
}

export interface SessionSwitch {
  model?: string | undefined;
  permissionMode?: PermissionMode | undefined;
  permissionTimeoutMs?: number | undefined;
}

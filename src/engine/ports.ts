import type { GitBash } from '../config/needed-programs.ts';
import type { AgentLaunch, AgentListener, AgentProcess } from '../driver/agent-process.ts';
import type { SpareTemplate } from '../driver/driver.ts';
import type { Decision } from '../driver/permission-ask.ts';
import type { TranscriptMirror } from '../driver/sdk-options.ts';
import type { AuditActor, AuditKind } from '../schema/enums.ts';
import type { LogLevel } from '../schema/setting-choices.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import type { Workspaces } from '../workspace/workspace.ts';
import type { RequestRecord, SessionEvent } from '../schema/events.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { StandingRule } from '../schema/standing-rules.ts';
import type { Clock } from './clock.ts';
import type { RuleSet } from './rules/standing/rule-set.ts';
import type { OtherHubs } from './elsewhere/elsewhere.ts';
import type { Grant, GrantEnd } from './requests/grants.ts';
import type { StoredStretch } from './conversation/reading.ts';
import type { Message } from './conversation/outbox.ts';
import type { OpenedWorkspace } from './session/session-work.ts';
import type { DiskSession, TranscriptTally } from '../transcripts/disk-sessions.ts';

/** What the engine needs from the outside world; each service can be replaced by tests and embedders. */
export interface EngineServices {
  clock: Clock;
  driver: {
    launch(launch: AgentLaunch, listener: AgentListener): Promise<AgentProcess>;
    /** A warm process already has an id; a driver without one leaves the choice to the engine. */
    newSessionId?(launch: SpareTemplate): string;
  };
  /** Processes that outlive this one, where there are any. */
  kept?: KeptAgents;
  transcripts: TranscriptReader;
  audit: AuditTrail;
  /** What outlives this process; without it, sessions are forgotten with the process. */
  archive?: SessionArchive;
  /** Other hubs on the same store, if there can be any. */
  others?: OtherHubs;
  /** Where others share the archive. */
  lease?: FleetLease;
  /** Where sessions can move to other machines: their transcripts are found there too. */
  transcriptMirrors?: TranscriptMirrors;
  /** Decisions that people have made in advance. */
  standingRules?: StandingRules;
  /** Where Claude Code keeps this user's data. */
  configDir: string;
  /** What this server and Claude Code keep on this machine: only the user it runs as may work there. */
  privatePlaces?: readonly string[];
  /** Whether a person has trusted this very project in Claude Code. */
  isTrusted(directory: string): Promise<boolean>;
  /** Looked up at each start: it may have been installed since the last one. */
  findGitBash?: () => GitBash;
  /** What a caller should know before it relies on a session started with these options. */
  startWarnings?: (options: SessionOptions) => Promise<string[]>;
  /** Loaded when the first session starts; without it nothing is reported about files. */
  workspaces?: () => Promise<WorkspaceModule>;
  /** The environment of a Claude Code process before the caller's own variables. */
  baseEnv: NodeJS.ProcessEnv;
  log: (level: LogLevel, line: string) => void;
  /** Ends the services themselves, after the last session. */
  release?: () => Promise<void>;
}

/** Processes that an earlier server started and that are still there. */
export interface KeptAgents {
  find(sessionId: string): AdoptableRun | undefined;
  /** Whether this process is one of them. */
  has(pid: number): boolean;
  adopt(run: AdoptableRun, launch: AgentLaunch, listener: AgentListener): Promise<AgentProcess>;
  /** Ends one that is not continued. */
  end(run: AdoptableRun): Promise<void>;
  /** From now on none is ended when this server is. */
  leave(): void;
}

export interface AdoptableRun {
  readonly run: string;
  readonly session: string;
  /** The operator's rules that it was launched under. */
  readonly rules: Readonly<Record<string, unknown>>;
  /** It has ended since; what it said last may be unread. */
  readonly hasEnded: boolean;
  /** How many servers died on the same line of its output. */
  readonly deaths: number;
  /** How much of its output an earlier server has dealt with; set from what is stored. */
  readonly after?: number | undefined;
}

/** Where standing rules come from. */
export interface StandingRules {
  /** Those in force, as far as is known here. */
  readonly inForce: RuleSet;
  /** Whether a rule that would allow something is still in force: false where that cannot be told. */
  confirm(rule: StandingRule): Promise<boolean>;
  /** Counts a decision that the rule made. */
  used(ruleId: string): void;
  /** Calls back when other rules are in force. */
  subscribe(changed: () => void): () => void;
}

/** The right to run sessions that another process takes over if this one is silent for too long. */
export interface FleetLease {
  /** Renewed so recently that no one else can have taken one. */
  readonly held: boolean;
}

export interface ArchivedSessions {
  readonly sessions: readonly SessionRecord[];
  readonly unreadable: readonly string[];
}

export interface SessionArchive {
  /** Resolves when everything that has happened so far is stored; rejects with `UNAVAILABLE` while it cannot be. */
  stored(): Promise<void>;
  /**
   * Resolves when everything that has happened so far is stored, however long that takes: undefined if it already is.
   * Never rejects.
   */
  everStored(): Promise<void> | undefined;
  /** Throws `UNAVAILABLE` while nothing can be stored. */
  checkReachable(): void;
  /** A session that this process does not have. From now on this process may change it. */
  recall(sessionId: string): Promise<RecalledSession | undefined>;
  /** Some of its events, in a row, from after one on. */
  events(sessionId: string, after: number): Promise<StoredStretch>;
  /** Its owner, without recalling it. */
  ownerOf(sessionId: string): Promise<string | undefined>;
  /** Most recently active first; with the ids of those that are stored but cannot be read. */
  list(query: { readonly principal?: string; readonly limit: number }): Promise<ArchivedSessions>;
  /** What was decided on a request, as Claude Code is to be told. */
  decisionOn(requestId: string): Promise<Decision | undefined>;
  grantAdded(grant: Grant): void;
  grantClosed(grant: Grant, end: GrantEnd): void;
}

export interface TranscriptMirrors {
  /**
   * Before a process resumes a recalled session: makes the transcript on this machine match the shared one, unless it
   * already has all of it. Returns whether it had to. A store that is away is asked again until it is given up.
   */
  fetch(session: MirroredSession, cwd: string, isGivenUp: () => boolean): Promise<boolean>;
  /** For a process that is about to be started. */
  open(session: MirroredSession, listener: MirrorListener): TranscriptMirror;
}

/** This object remembers what was found of its transcript. */
export interface MirroredSession {
  readonly id: string;
}

export interface MirrorListener {
  /** Until it is repaired, another machine could not continue the session. */
  onBroken(reason: string): void;
  onWhole(): void;
}

/** Everything stored about a session. */
export interface RecalledSession {
  readonly record: SessionRecord;
  /** Another hub ran it last: a process that was left here does not know what happened since. */
  readonly ranElsewhere: boolean;
  /** Oldest first. */
  readonly events: readonly SessionEvent[];
  readonly lastEventId: number;
  /** The highest id that was dropped. */
  readonly droppedThrough: number;
  /** Those that are open. */
  readonly requests: readonly RequestRecord[];
  /** Those that Claude Code was never given. */
  readonly messages: readonly Message[];
  /** Those that are open. */
  readonly grants: readonly Grant[];
}

export interface WorkspaceModule extends Omit<OpenedWorkspace, 'workspace'> {
  readonly workspaces: Workspaces;
}

export interface TranscriptReader {
  find(sessionId: string): Promise<{ cwd: string | undefined } | undefined>;
  /** Whether a process that was killed left a conversation to resume; if not, its id can be reused. */
  salvage(sessionId: string): Promise<boolean>;
  /** Whether Claude Code has written this message, as an entry or in one. */
  mentions(sessionId: string, messageId: string): Promise<boolean>;
  /** Whether any transcript of the same project was written since then. */
  isProjectWrittenSince(sessionId: string, at: number): Promise<boolean>;
  lastCostUsd(sessionId: string): Promise<number>;
  tally(sessionId: string): Promise<TranscriptTally>;
  list(
    query: DiskQuery & { within?: ((directory: string, sessionId: string) => boolean) | undefined },
  ): Promise<DiskSession[]>;
  /** Keeps other servers from starting a process for this session until released, or says which one already has. */
  lock(sessionId: string): Promise<{ release(): Promise<void> } | { pid: number }>;
  /** Another live Claude Code that has this session open. */
  findHolder(sessionId: string, isOurs: (pid: number) => boolean): Promise<{ pid: number } | undefined>;
}

export interface DiskQuery {
  projectDirectory?: string | undefined;
  limit: number;
  offset: number;
}

export interface AuditRecord {
  kind: AuditKind;
  session?: string;
  /** Who called or decided; otherwise whose session it is. */
  principal?: string;
  /** Its display name. */
  name?: string;
  who: AuditActor;
  what: string;
  outcome?: string;
  cost?: number;
  details?: Record<string, string | number | boolean>;
}

export interface AuditTrail {
  record(entry: AuditRecord): void;
}

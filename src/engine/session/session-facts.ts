import type { Settings } from '../../config/load-settings.ts';
import type { LastAction } from '../../schema/own-action.ts';
import type { Work } from '../../schema/results.ts';
import type { PermissionMode, SessionOptions } from '../../schema/session-options.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { Activity } from '../conversation/activity.ts';
import type { Instant } from '../clock.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { EventLog } from '../conversation/event-log.ts';
import type { ProcessHolder } from '../process/process-holder.ts';
import type { AboutSession } from '../notices.ts';
import type { Principal } from '../rules/principal.ts';
import type { OpenRequest } from '../requests/requests.ts';
import type { Rules } from '../rules/rules.ts';
import type { Cancellation, RestoredSession, SessionServices } from './session-types.ts';
import { withoutWorkspaces, type SessionWork } from './session-work.ts';
import { isAtRest, type State } from '../conversation/state.ts';
import type { Totals } from '../conversation/totals.ts';
import type { TurnResult } from '../conversation/turn-result.ts';
import { workOf } from '../conversation/work.ts';

/** The public view of a session. Reading it changes nothing. */
export abstract class SessionFacts {
  protected abstract readonly conversation: Conversation;
  protected abstract readonly process: ProcessHolder;
  protected abstract readonly sessionWork: SessionWork | undefined;
  protected abstract readonly services: SessionServices;
  /** What an earlier server process left of it, until its next turn starts. */
  protected abstract restored: RestoredSession | undefined;

  abstract readonly id: string;
  abstract readonly owner: Principal;
  /** The rules it was started under, and keeps. */
  abstract readonly rules: Rules;

  /** What a notice about it says. */
  get about(): AboutSession {
    return { sessionId: this.id, owner: this.owner.id, atRest: this.atRest, totals: this.totals.session };
  }

  // ── the conversation ───────────────────────────────────────────────────────────────────────────────────────────

  /** A finished turn counts as running until its work is known; a cancelled session waits for nothing. */
  get state(): State {
    const { state } = this.conversation;
    return this.reporting && state !== 'cancelled' ? 'running' : state;
  }

  get atRest(): boolean {
    return isAtRest(this.state);
  }

  get log(): EventLog {
    return this.conversation.log;
  }

  get activity(): Activity {
    return this.conversation.activity;
  }

  get totals(): Totals {
    return this.conversation.totals;
  }

  /** The answer of the last call; only at rest is it the final one. */
  get result(): TurnResult | undefined {
    return this.conversation.result;
  }

  get cancellation(): Cancellation | undefined {
    return this.conversation.cancellation;
  }

  /** What Claude is writing and has not finished; only in a session started with streaming. */
  get unfinishedText(): string {
    return this.conversation.unfinishedText;
  }

  /** The first event after the last message. */
  get lastMessageAt(): number {
    return this.conversation.lastMessageAt;
  }

  /** One line on what it is about: the first message this server gave it. */
  get topic(): string {
    return this.conversation.topic;
  }

  get backgroundTasks(): number {
    return this.conversation.backgroundTasks;
  }

  get options(): SessionOptions {
    return this.conversation.setup.options;
  }

  get tools(): string[] | undefined {
    return this.conversation.setup.tools;
  }

  get model(): string | undefined {
    return this.conversation.setup.model;
  }

  get permissionMode(): PermissionMode | undefined {
    return this.conversation.setup.permissionMode;
  }

  get persists(): boolean {
    return this.options.persistSession !== false;
  }

  // ── times ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Time of day, like `createdAt` and `lastActiveAt`. */
  get now(): number {
    return this.services.clock.wallTime();
  }

  get createdAt(): number {
    return this.conversation.times.createdAt;
  }

  get lastActiveAt(): number {
    return this.conversation.times.lastActiveAt;
  }

  /** How long ago something last happened to it. */
  get restedMs(): number {
    return this.conversation.times.restedMs;
  }

  /** How long its call has been running. */
  get workedMs(): number {
    return this.conversation.times.workedMs;
  }

  /** How long Claude Code has been silent while working. */
  get quietMs(): number {
    return this.conversation.times.quietMs;
  }

  // ── requests ───────────────────────────────────────────────────────────────────────────────────────────────────

  get requests(): OpenRequest[] {
    return this.conversation.requests.all;
  }

  /** What became of the last action that a person was asked about. */
  get lastAction(): LastAction | undefined {
    return this.conversation.lastAction;
  }

  /** It waits for a person's decision on an action of the server's own, or for that action: it takes no messages. */
  get awaitsAction(): boolean {
    return this.conversation.awaitsAction;
  }

  /** Whether the server may work with its files: it is at rest, or only waits for the server to do so. */
  get leavesFilesAlone(): boolean {
    return this.atRest || this.conversation.actionUnderWay !== undefined;
  }

  findRequest(id: string): OpenRequest | undefined {
    return this.conversation.requests.find(id);
  }

  /** Who may answer its requests. */
  get approvals(): Settings['approvals'] {
    return this.rules.settings.approvals;
  }

  /** Requests are settled only by those who may answer them: waiting is neither working nor resting. */
  get keepsRequests(): boolean {
    return this.services.keepsRequests === true && this.persists;
  }

  // ── the process ────────────────────────────────────────────────────────────────────────────────────────────────

  get hasProcess(): boolean {
    return this.process.live !== undefined;
  }

  /** A process was launched but has not reported its start. */
  get launching(): boolean {
    return this.process.starting;
  }

  get closing(): boolean {
    return this.process.closing;
  }

  /** There is a process, or one is starting or closing. */
  get holdsPlace(): boolean {
    return this.hasProcess || this.launching || this.closing;
  }

  /** Also while it is closing. */
  get pid(): number | undefined {
    return this.process.pid;
  }

  /** Resolves when a process that is being closed is gone. */
  closed(): Promise<void> {
    return this.process.closed();
  }

  /** A process may have died without its exit being reported yet; what is sent to it would be lost. */
  exitReported(): Promise<void> {
    return this.process.exitReported();
  }

  /** Everything alive in it waits for answers, so its process can be released. */
  get detachable(): boolean {
    return this.keepsRequests && this.hasProcess && !this.launching && this.conversation.onlyWaits;
  }

  // ── its work ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Its turn has ended, and its work is being determined. */
  get reporting(): boolean {
    return this.conversation.atRest && this.sessionWork?.isReporting === true;
  }

  /** Resolves when the report of a finished turn is available. */
  async reported(): Promise<void> {
    await this.sessionWork?.reported();
  }

  /** The worktree it works in, if it was given one. */
  get worktree(): Workspace | undefined {
    return this.sessionWork?.worktree;
  }

  /** Where it works. */
  async workspace(): Promise<Workspace> {
    if (!this.sessionWork) throw withoutWorkspaces();
    return (await this.sessionWork.opened()).workspace;
  }

  /** Evidence of what the last call did. */
  get work(): Work | undefined {
    if (this.restored?.work) return this.restored.work;
    const { problems } = this.activity;
    return this.sessionWork ? this.sessionWork.short(problems) : workOf(undefined, problems);
  }

  /** Like the above, with every file and command. */
  get fullWork(): Work | undefined {
    return this.sessionWork && !this.restored?.work ? this.sessionWork.full(this.activity.problems) : this.work;
  }

  /** Whether it worked in this checkout since then. */
  workedIn(root: string, since: Instant): boolean {
    return this.sessionWork?.overlaps(root, since) === true;
  }
}

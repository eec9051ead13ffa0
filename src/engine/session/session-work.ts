import { DomainError, messageOf } from '../../errors/errors.ts';
import type { Problem, Work } from '../../schema/results.ts';
import type { Evidence, FullWork, ToolCall, WorkReport } from '../../workspace/report/work-report.ts';
import type { Mark, Workspace } from '../../workspace/workspace.ts';
import type { Clock, Instant } from '../clock.ts';
import { settledWithin } from '../patience.ts';
import { workOf } from '../conversation/work.ts';

/** How long an answer waits for the report of its work. */
const PATIENCE_MS = 2_000;

/** A workspace, and how its evidence is put into words: a module loaded with the first session. */
export interface OpenedWorkspace {
  readonly workspace: Workspace;
  readonly workReport: (evidence: Evidence) => WorkReport;
  readonly fullWork: (evidence: Evidence) => FullWork;
}

export interface WorkServices {
  readonly clock: Clock;
  open(): Promise<OpenedWorkspace>;
  /** Whether another session worked in this checkout at some time since. */
  othersWorked(root: string, since: Instant): boolean;
  debug(line: string): void;
}

export interface TurnFacts {
  readonly calls: readonly ToolCall[];
  /** Something ran that may have changed files. */
  readonly acted: boolean;
}

interface Turn {
  readonly from: Instant;
  to: Instant | undefined;
  readonly mark: Promise<Mark>;
  /** Its first tool ran before the baseline was taken. */
  overtaken: boolean;
  marked: boolean;
  /** Undefined while it runs. */
  acted: boolean | undefined;
}

interface Report {
  readonly evidence: Evidence;
  readonly incomplete?: string;
}

export function withoutWorkspaces(): DomainError {
  return new DomainError('INTERNAL', 'This engine is configured without workspaces.');
}

/** Where a session works, and what it did there in its last turn. */
export class SessionWork {
  readonly #services: WorkServices;
  #opening: Promise<OpenedWorkspace> | undefined;
  #opened: OpenedWorkspace | undefined;
  #turn: Turn | undefined;
  #lastMark: Mark;
  #report: Report | undefined;
  #reporting: Promise<void> | undefined;

  /** `opened`: a worktree that was made for the session. */
  constructor(services: WorkServices, opened?: OpenedWorkspace) {
    this.#services = services;
    this.#opened = opened;
    this.#opening = opened && Promise.resolve(opened);
  }

  /** The worktree it works in, if it has one. */
  get worktree(): Workspace | undefined {
    const { workspace } = this.#opened ?? {};
    return workspace?.worktree && workspace;
  }

  /** The report of the last turn is not complete yet. */
  get isReporting(): boolean {
    return this.#reporting !== undefined;
  }

  async reported(): Promise<void> {
    await this.#reporting;
  }

  opened(): Promise<OpenedWorkspace> {
    return (this.#opening ??= this.#open());
  }

  /** Nothing waits for it: the prompt is already being sent. */
  turnBegins(): void {
    const mark = this.#markNow();
    const from = this.#services.clock.instant();
    const turn: Turn = { from, to: undefined, mark, overtaken: false, marked: false, acted: undefined };
    this.#turn = turn;
    this.#report = undefined;
    this.#reporting = undefined;
    mark.then(
      (taken) => {
        turn.marked = true;
        this.#lastMark ??= taken;
        // One that its first tool has overtaken is no baseline; that of the turn before is.
        if (!turn.overtaken) this.#keep(taken);
      },
      (error: unknown) => this.#services.debug(`work report: ${messageOf(error)}`),
    );
  }

  /** An earlier server began the turn: its report starts from the baseline that was kept. */
  turnContinues(): void {
    const mark = this.opened().then(({ workspace }) => workspace.lastMark());
    mark.catch((error: unknown) => this.#services.debug(`work report: ${messageOf(error)}`));
    const from = this.#services.clock.instant();
    this.#turn = { from, to: undefined, mark, overtaken: false, marked: true, acted: undefined };
  }

  toolUsed(): void {
    if (this.#turn && !this.#turn.marked) this.#turn.overtaken = true;
  }

  /** Collects what the turn did; `done` is called when it is known, or when it took too long. */
  turnEnds(facts: TurnFacts, done: () => void): void {
    const turn = this.#turn;
    if (!turn) return done();
    turn.to = this.#services.clock.instant();
    turn.acted = facts.acted;
    const collected = this.#collect(turn, facts);
    const reporting = this.#within(collected, turn, facts).then(() => {
      if (this.#reporting === reporting) this.#reporting = undefined;
      done();
    });
    this.#reporting = reporting;
  }

  /** At most 600 bytes of report, and what went wrong. */
  short(problems: readonly Problem[]): Work | undefined {
    return workOf(this.#report && this.#opened?.workReport(this.#report.evidence), problems, this.#report?.incomplete);
  }

  /** Every file and every command. */
  full(problems: readonly Problem[]): Work | undefined {
    return workOf(this.#report && this.#opened?.fullWork(this.#report.evidence), problems, this.#report?.incomplete);
  }

  /** Whether it worked in this checkout since then. */
  overlaps(root: string, since: Instant): boolean {
    const { workspace } = this.#opened ?? {};
    return workspace?.root === root && this.#turn !== undefined && (this.#turn.to ?? Infinity) >= since;
  }

  /** A workspace that is still being opened is not waited for: a large repository must not delay shutdown. */
  async close(): Promise<void> {
    if (this.#opened) await this.#opened.workspace.close();
    else this.#opening?.then(({ workspace }) => workspace.close()).catch(() => undefined);
  }

  async #open(): Promise<OpenedWorkspace> {
    return (this.#opened = await this.#services.open());
  }

  #markNow(): Promise<Mark> {
    const last = this.#turn;
    if (!last) return this.opened().then(({ workspace }) => workspace.begun ?? workspace.mark());
    // The session has done nothing since that one was begun: short turns must not have git look again for each.
    return last.acted === false && !last.marked ? last.mark : this.#mark();
  }

  async #mark(): Promise<Mark> {
    return (await this.opened()).workspace.mark();
  }

  async #within(collected: Promise<Report>, turn: Turn, { calls }: TurnFacts): Promise<void> {
    const kept = collected.then(
      (report) => {
        if (this.#turn === turn) this.#report = report;
      },
      (error: unknown) => {
        this.#services.debug(`work report: ${messageOf(error)}`);
        this.#fallBack(turn, calls, `git failed (${messageOf(error)})`);
      },
    );
    if (await settledWithin(this.#services.clock, PATIENCE_MS, kept)) return;
    this.#fallBack(turn, calls, `git took longer than ${String(PATIENCE_MS / 1000)} s`);
  }

  #fallBack(turn: Turn, calls: readonly ToolCall[], why: string): void {
    if (this.#turn !== turn) return;
    const evidence = { calls, changes: undefined, lastWrite: 0, shared: this.#isShared(turn) };
    this.#report = { evidence, incomplete: `${why}: the files are those reported by the file tools` };
  }

  async #collect(turn: Turn, { calls, acted }: TurnFacts): Promise<Report> {
    const { workspace } = await this.opened();
    // Nothing ran: there is nothing to look for.
    if (!acted) return { evidence: { calls, changes: [], lastWrite: 0, shared: false } };
    const mark = await turn.mark;
    const since = turn.overtaken ? (this.#lastMark ?? mark) : mark;
    const { now, ...evidence } = await workspace.evidence(since, calls, this.#isShared(turn));
    this.#lastMark = now;
    this.#keep(now);
    return { evidence };
  }

  /** For a server that has to report a turn which this one cannot finish. */
  #keep(mark: Mark): void {
    this.#opened?.workspace
      .keepMark(mark)
      .catch((error: unknown) => this.#services.debug(`work report: ${messageOf(error)}`));
  }

  #isShared({ from }: Turn): boolean {
    const root = this.#opened?.workspace.root;
    return root !== undefined && this.#services.othersWorked(root, from);
  }
}

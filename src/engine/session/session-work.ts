import { DomainError, messageOf } from '../../errors/errors.ts';
import type { Problem, Work } from '../../schema/results.ts';
import type {
  Evidence,
  FullWork,
  ReportedProblem,
  SessionSums,
  ToolCall,
  WorkReport,
} from '../../workspace/report/work-report.ts';
import type { Mark, Workspace } from '../../workspace/workspace.ts';
import { settledWithin, type Clock, type Instant } from '../clock.ts';
import type { Session } from './session.ts';
import { workOf } from '../conversation/call-log.ts';

/** How long an answer waits for the report of its work, and a new process for the baseline of its first turn. */
const PATIENCE_MS = 2_000;

/** How evidence is put into words: a module loaded with the first session. */
export interface WorkWords {
  readonly workReport: (evidence: Evidence, problems: readonly ReportedProblem[]) => WorkReport;
  readonly fullWork: (evidence: Evidence, problems: readonly ReportedProblem[]) => FullWork;
}

export interface OpenedWorkspace extends WorkWords {
  readonly workspace: Workspace;
}

export interface WorkServices {
  readonly clock: Clock;
  /** Missing in an engine without workspaces: nothing is reported about files then. */
  openWorkspace?(session: Session): Promise<OpenedWorkspace>;
  /** What a report needs while the workspace is not open. */
  loadWords?(): Promise<WorkWords>;
  /** Whether another session worked in this checkout at some time since. */
  othersWorked?(session: Session, root: string, since: Instant): boolean;
  debug(line: string): void;
}

/** What there is of it when a session is made. */
interface WorkSeed {
  /** A worktree that was made for the session. */
  readonly opened?: OpenedWorkspace | undefined;
  /** The report that an earlier process left. */
  readonly work?: Work | undefined;
  /** That process ended before it knew what the last turn had done. */
  readonly lacksReport?: boolean;
}

export interface TurnFacts {
  readonly calls: readonly ToolCall[];
  /** Those of the whole session. */
  readonly all: readonly ToolCall[];
  /** Something ran that may have changed files. */
  readonly acted: boolean;
}

interface Turn {
  /** Counted from 1, under this server. */
  readonly number: number;
  readonly from: Instant;
  readonly mark: Promise<Mark>;
  /** `overtaken`: its first tool ran before the mark was taken. */
  baseline: 'pending' | 'taken' | 'overtaken';
}

interface Ended {
  readonly turn: Turn;
  readonly at: Instant;
  readonly acted: boolean;
}

interface Report {
  readonly evidence: Evidence;
  /** Undefined if not even that could be loaded. */
  readonly words: WorkWords | undefined;
  readonly incomplete?: string;
}

/** What is known about the last turn. */
type Phase =
  /** None was begun by this process. `work`: what an earlier process reported of its last; `unreported`: not all of it. */
  | { readonly kind: 'none' | 'unreported'; readonly work: Work | undefined }
  | { readonly kind: 'running'; readonly turn: Turn }
  /** It has ended, and its work is being determined. */
  | { readonly kind: 'reporting'; readonly ended: Ended; readonly done: Promise<void>; report: Report | undefined }
  | { readonly kind: 'reported'; readonly ended: Ended; report: Report };

const NO_TURN: Phase = { kind: 'none', work: undefined };

export function withoutWorkspaces(): DomainError {
  return new DomainError('INTERNAL', 'This engine is configured without workspaces.');
}

/** Where a session works, and what it did there in its last turn. */
export class SessionWork {
  readonly #session: Session;
  readonly #services: WorkServices;
  #opening: Promise<OpenedWorkspace> | undefined;
  #opened: OpenedWorkspace | undefined;
  #phase: Phase;
  #lastMark: Mark;
  #turns = 0;
  /** What the session had changed after the last turn that did something. */
  #sums: SessionSums | undefined;

  constructor(session: Session, services: WorkServices, { opened, work, lacksReport = false }: WorkSeed = {}) {
    this.#session = session;
    this.#services = services;
    this.#opened = opened;
    this.#opening = opened && Promise.resolve(opened);
    this.#phase = { kind: lacksReport ? 'unreported' : 'none', work };
  }

  /** The worktree it works in, if it has one. */
  get worktree(): Workspace | undefined {
    const { workspace } = this.#opened ?? {};
    return workspace?.worktree && workspace;
  }

  /** An earlier process ended before it knew what the last turn had done. */
  get lacksReport(): boolean {
    return this.#phase.kind === 'unreported';
  }

  /** The report of the last turn is not complete yet. */
  get isReporting(): boolean {
    return this.#phase.kind === 'reporting';
  }

  async reported(): Promise<void> {
    if (this.#phase.kind === 'reporting') await this.#phase.done;
  }

  opened(): Promise<OpenedWorkspace> {
    return (this.#opening ??= this.#open());
  }

  /** Where it works. */
  async workspace(): Promise<Workspace> {
    return (await this.opened()).workspace;
  }

  /** Nothing waits for it: the prompt is already being sent. */
  turnBegins(): void {
    if (!this.#services.openWorkspace) {
      this.#phase = NO_TURN;
      return;
    }
    const number = ++this.#turns;
    const turn: Turn = { number, mark: this.#markNow(), from: this.#services.clock.instant(), baseline: 'pending' };
    this.#phase = { kind: 'running', turn };
    turn.mark.then(
      (taken) => {
        this.#lastMark ??= taken;
        // One that its first tool has overtaken is no baseline; that of the turn before is.
        if (turn.baseline === 'overtaken') return;
        turn.baseline = 'taken';
        this.#keep(taken);
      },
      (error: unknown) => this.#debug(error),
    );
  }

  /**
   * Resolves when git has looked at what the turn starts from, or takes too long. A new process boots meanwhile, so this
   * delays nothing; without it the first tool could be faster on a busy machine, and what it wrote would be no change.
   */
  async baselineKnown(): Promise<void> {
    if (this.#phase.kind !== 'running') return;
    const { mark } = this.#phase.turn;
    // Without it the report says what is missing.
    await settledWithin(
      this.#services.clock,
      PATIENCE_MS,
      mark.catch(() => undefined),
    );
  }

  /** An earlier server began the turn: its report starts from the baseline that was kept. */
  turnContinues(): void {
    if (!this.#services.openWorkspace) return;
    const mark = this.workspace().then((workspace) => workspace.lastMark());
    mark.catch((error: unknown) => this.#debug(error));
    const turn: Turn = { number: ++this.#turns, mark, from: this.#services.clock.instant(), baseline: 'taken' };
    this.#phase = { kind: 'running', turn };
  }

  toolUsed(): void {
    if (this.#phase.kind !== 'running') return;
    const { turn } = this.#phase;
    if (turn.baseline === 'pending') turn.baseline = 'overtaken';
  }

  /**
   * Collects what the turn did; `done` is called when it is known, or when it took too long. A session may end without
   * another turn: what its last one did is known then, or about to be.
   */
  turnEnds(facts: TurnFacts, done: () => void): void {
    const phase = this.#phase;
    if (phase.kind === 'reporting') void phase.done.then(done);
    else if (phase.kind === 'running') this.#reports(phase.turn, facts, done);
    else done();
  }

  #reports(turn: Turn, facts: TurnFacts, done: () => void): void {
    const ended = { turn, at: this.#services.clock.instant(), acted: facts.acted };
    const reporting = this.#within(ended, facts).then(() => {
      const phase = this.#phase;
      if (isOf(ended, phase) && phase.report) this.#phase = { kind: 'reported', ended, report: phase.report };
      done();
    });
    this.#phase = { kind: 'reporting', ended, done: reporting, report: undefined };
  }

  /** As much as every answer can carry, and what went wrong. */
  short(problems: readonly Problem[]): Work | undefined {
    return this.#work(problems, 'workReport');
  }

  /** Every file and every command. */
  full(problems: readonly Problem[]): Work | undefined {
    return this.#work(problems, 'fullWork');
  }

  #work(problems: readonly Problem[], words: 'workReport' | 'fullWork'): Work | undefined {
    const phase = this.#phase;
    if ('work' in phase) return phase.work ?? workOf(undefined, problems);
    const report = phase.kind === 'running' ? undefined : phase.report;
    return workOf(report?.words?.[words](report.evidence, problems), problems, report?.incomplete);
  }

  /** Whether it worked in this checkout since then. */
  overlaps(root: string, since: Instant): boolean {
    const phase = this.#phase;
    if ('work' in phase || this.#opened?.workspace.root !== root) return false;
    return phase.kind === 'running' || phase.ended.at >= since;
  }

  /** A workspace that is still being opened is not waited for: a large repository must not delay shutdown. */
  async close(): Promise<void> {
    if (this.#opened) await this.#opened.workspace.close();
    else this.#opening?.then(({ workspace }) => workspace.close()).catch(() => undefined);
  }

  async #open(): Promise<OpenedWorkspace> {
    const opening = this.#services.openWorkspace?.(this.#session);
    if (!opening) throw withoutWorkspaces();
    return (this.#opened = await opening);
  }

  #markNow(): Promise<Mark> {
    const phase = this.#phase;
    if ('work' in phase) return this.workspace().then((workspace) => workspace.begun ?? workspace.mark());
    // The session has done nothing since that one was begun: short turns must not have git look again for each.
    const isIdle = phase.kind !== 'running' && !phase.ended.acted && phase.ended.turn.baseline === 'pending';
    return isIdle ? phase.ended.turn.mark : this.workspace().then((workspace) => workspace.mark());
  }

  async #within(ended: Ended, facts: TurnFacts): Promise<void> {
    const kept = this.#collect(ended.turn, facts).then(
      (report) => this.#keepReport(ended, report),
      (error: unknown) => {
        this.#debug(error);
        return this.#fallBack(ended, facts, `git failed (${messageOf(error)})`);
      },
    );
    if (await settledWithin(this.#services.clock, PATIENCE_MS, kept)) return;
    await this.#fallBack(ended, facts, `git took longer than ${String(PATIENCE_MS / 1000)} s`);
  }

  /** Says what is known without git, unless the complete report arrives first. */
  async #fallBack(ended: Ended, { calls }: TurnFacts, why: string): Promise<void> {
    const words = this.#opened ?? (await this.#services.loadWords?.().catch((error: unknown) => this.#debug(error)));
    const phase = this.#phase;
    if (isOf(ended, phase) && phase.report) return;
    const root = this.#opened?.workspace.root;
    const evidence = { calls, changes: undefined, lastWrite: 0, shared: this.#isShared(ended.turn), root };
    const incomplete = `${why}: the files are those reported by the file tools`;
    this.#keepReport(ended, { evidence, words: words ?? undefined, incomplete });
  }

  /** A report that arrives after the next turn has started is not that turn's. */
  #keepReport(ended: Ended, report: Report): void {
    const phase = this.#phase;
    if (isOf(ended, phase)) phase.report = report;
  }

  async #collect(turn: Turn, { calls, all, acted }: TurnFacts): Promise<Report> {
    const { workspace, ...words } = await this.opened();
    const isFirst = turn.number === 1 && workspace.isResumed !== true;
    // Nothing ran: there is nothing to look for.
    if (!acted) {
      const session = isFirst ? undefined : this.#sums;
      return { evidence: { calls, changes: [], lastWrite: 0, shared: false, session }, words };
    }
    const mark = await turn.mark;
    const since = turn.baseline === 'overtaken' ? (this.#lastMark ?? mark) : mark;
    const { now, session, ...evidence } = await workspace.evidence(since, calls, this.#isShared(turn), all);
    this.#lastMark = now;
    this.#sums = session;
    this.#keep(now);
    return { evidence: { ...evidence, session: isFirst ? undefined : session }, words };
  }

  /** For a server that has to report a turn which this one cannot finish. */
  #keep(mark: Mark): void {
    this.#opened?.workspace.keepMark(mark).catch((error: unknown) => this.#debug(error));
  }

  #isShared({ from }: Turn): boolean {
    const root = this.#opened?.workspace.root;
    return root !== undefined && this.#services.othersWorked?.(this.#session, root, from) === true;
  }

  #debug(error: unknown): void {
    this.#services.debug(`work report: ${messageOf(error)}`);
  }
}

function isOf(ended: Ended, phase: Phase): phase is Extract<Phase, { readonly ended: Ended }> {
  return 'ended' in phase && phase.ended === ended;
}

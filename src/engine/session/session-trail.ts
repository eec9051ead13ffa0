import { digestLine } from '../../audit/audit-log.ts';
import type { Decision, PermissionUpdate } from '../../driver/permission-ask.ts';
import type { ToolStatus } from '../../schema/enums.ts';
import type { LastAction } from '../../schema/own-action.ts';
import type { Work } from '../../schema/results.ts';
import type { Gate } from '../gate.ts';
import type { Grant, GrantEnd } from '../requests/grants.ts';
import type { OpenRequest, Outcome, Source } from '../requests/requests.ts';
import type { AuditRecord, AuditTrail } from '../ports.ts';
import type { ToolUse } from '../conversation/activity.ts';
import type { Session } from './session.ts';
import type { RestedTurn, SessionOrigin } from './session-types.ts';
import { ranInstead } from '../requests/shown-request.ts';
import { oneLine } from '../conversation/tool-summary.ts';
import { roundUsd } from '../conversation/totals.ts';

type Kind = 'start' | 'request' | 'decision' | 'end';

const MAX_LINE_LENGTH = 200;

/** What sessions leave in the audit log and, one line each, in the server's log: texts only as length and digest. */
export class SessionTrail {
  readonly #audit: AuditTrail;
  readonly #gate: Gate;
  readonly #info: (line: string) => void;

  constructor(audit: AuditTrail, gate: Gate, info: (line: string) => void) {
    this.#audit = audit;
    this.#gate = gate;
    this.#info = info;
  }

  /** Its process was not continued by a new hub. */
  processRefused(session: Session, why: string): void {
    this.#record(session, 'end', 'policy', 'process', {}, why);
  }

  started(session: Session, origin: SessionOrigin, prompt: string): void {
    this.#record(session, 'start', 'caller', origin.kind, { prompt: digestLine(prompt) });
  }

  startFailed(session: Session, error: string): void {
    this.#record(session, 'end', 'server', 'start failed', {}, error);
  }

  requested(session: Session, { id, kind, ask, own }: OpenRequest): void {
    this.#record(session, 'request', own ? 'caller' : 'claude', ask.toolName, {
      request: id,
      kind,
      input: digestLine(JSON.stringify(ask.input)),
    });
  }

  settled(session: Session, request: OpenRequest, outcome: Outcome): void {
    const { decision, source, by, byName } = outcome;
    const details = decisionDetails(request.id, session.owner.id, outcome, ranInstead(request, decision));
    const decider = by === undefined ? {} : { principal: by, ...(byName !== undefined && { name: byName }) };
    this.#record(session, 'decision', source, request.ask.toolName, details, decision.behavior, decider);
  }

  /** Claude Code refused a call that it did not ask about, by a standing rule. */
  ruledOut(session: Session, { id, toolName, rule }: ToolUse): void {
    const details = { call: id, by: 'rule', ...(rule && { rule: rule.id, author: rule.author }) };
    this.#record(session, 'decision', 'rule', toolName, details, 'deny');
  }

  /** What became of an action that a person had allowed. */
  acted(session: Session, { action, requestId, outcome }: LastAction): void {
    this.#record(session, 'decision', 'server', action, { request: requestId }, outcome);
  }

  /** With what brings it back. Its session may be forgotten by now. */
  branchDeleted(
    { id, owner }: { readonly id: string; readonly owner: Session['owner'] | undefined },
    branch: string,
    { commit, ref }: { readonly commit: string; readonly ref: string },
  ): void {
    const whose = owner && { principal: owner.id, name: owner.name };
    const details = { branch, commit, ref };
    this.#gate.afterStored(() => {
      this.#info(`session ${id}: ${lineOf('decision', 'server', 'branch', 'deleted')}`);
      this.#audit.record({
        kind: 'decision',
        session: id,
        ...whose,
        who: 'server',
        what: 'branch',
        outcome: 'deleted',
        details,
      });
    });
  }

  /** Its process was released; its requests are still open. */
  parked(session: Session): void {
    const requests = session.requests.map(({ id }) => id).join(' ');
    this.#record(session, 'request', 'server', 'parked', { requests });
  }

  /** A call that was allowed while the session had no process was repeated, or was not. */
  grantEnded(session: Session, { requestId, tool }: Grant, { how }: GrantEnd): void {
    this.#record(session, 'decision', 'server', tool, { request: requestId }, how === 'used' ? 'repeated' : 'lapsed');
  }

  rested(session: Session, { state, errorSubtype, toolUses, work }: RestedTurn): void {
    const who = state === 'cancelled' ? 'cancel' : 'claude';
    const count = (status: ToolStatus): number => toolUses.filter((use) => use.status === status).length;
    const details = {
      ...workDetails(work),
      ...(count('failed') > 0 && { toolsFailed: count('failed') }),
      ...(count('denied') > 0 && { toolsDenied: count('denied') }),
      ...(session.conversation.totals.session.costUnknown && { costUnknown: true }),
    };
    this.#record(session, 'end', who, state, details, errorSubtype);
  }

  #record(
    session: Session,
    kind: Kind,
    who: Source | 'server' | 'claude',
    what: string,
    details: Record<string, string | number | boolean>,
    outcome?: string,
    decider: Pick<AuditRecord, 'principal' | 'name'> = {},
  ): void {
    const record: AuditRecord = {
      kind,
      session: session.id,
      principal: session.owner.id,
      name: session.owner.name,
      ...decider,
      who,
      what,
      ...(outcome !== undefined && { outcome }),
      ...(kind === 'end' && { cost: roundUsd(session.conversation.totals.session.costUsd) }),
      ...(Object.keys(details).length > 0 && { details }),
    };
    // A decision that a crash undoes is made again: the log has only the one that was kept.
    this.#gate.afterStored(() => {
      this.#info(`session ${session.id}: ${lineOf(kind, who, what, outcome)}`);
      this.#audit.record(record);
    });
  }
}

/** `ran`: the input that was allowed, if it is not the one that was asked about. */
export function decisionDetails(
  requestId: string,
  owner: string,
  { by, always, rule, decision }: Pick<Outcome, 'by' | 'always' | 'rule'> & { decision: Decision | undefined },
  ran: object | undefined,
): Record<string, string | number | boolean> {
  const updates = decision?.behavior === 'allow' ? (decision.updatedPermissions ?? []) : [];
  return {
    request: requestId,
    ...(by !== undefined && by !== owner && { by }),
    ...(always && { always }),
    ...(rule && { by: 'rule', rule: rule.id, author: rule.author }),
    ...(updates.length > 0 && { alsoAllowed: oneLine(updates.flatMap(grantWords).join(', '), MAX_LINE_LENGTH) }),
    ...(ran && { inputChanged: true, ran: digestLine(JSON.stringify(ran)) }),
  };
}

/** What was allowed beyond the call: a mode, or rules by their tools. */
function grantWords(update: PermissionUpdate): string[] {
  if (update.type === 'setMode') return [`mode ${update.mode}`];
  return 'rules' in update ? update.rules.map(({ toolName }) => `rule for ${toolName}`) : [update.type];
}

/** Counts, and which check: file names do not belong in the log. */
function workDetails(work: Work | undefined): Record<string, string | number | boolean> {
  const { filesChanged, insertions, deletions, commandsRun, commandsFailed, lastCheck, shared, incomplete } =
    work ?? {};
  const told = {
    filesChanged,
    insertions,
    deletions,
    commandsRun,
    commandsFailed,
    ...(lastCheck && { lastCheckExitCode: lastCheck.exitCode, lastCheckAfterLastEdit: lastCheck.afterLastEdit }),
    shared,
    ...(incomplete !== undefined && { workIncomplete: true }),
  };
  return Object.fromEntries(
    Object.entries(told).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Tool names come from MCP servers and error texts from anywhere: the output must stay on one line. */
function lineOf(kind: Kind, who: string, what: string, outcome: string | undefined): string {
  return oneLine(words(), MAX_LINE_LENGTH);

  function words(): string {
    switch (kind) {
      case 'start':
        return `start (${what})`;
      case 'request':
        return `request: ${what}`;
      case 'decision':
        return `decision: ${what} ${outcome ?? ''} by ${who}`;
      case 'end':
        return `end: ${what}${outcome === undefined ? '' : ` (${outcome})`}`;
    }
  }
}

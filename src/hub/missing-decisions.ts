import { readAudit } from '../audit/report.ts';
import { decisionDetails } from '../engine/session/session-trail.ts';
import type { AuditRecord, AuditTrail } from '../engine/ports.ts';
import type { AuditActor } from '../schema/enums.ts';
import { decisionOf } from '../fleet/session-codec.ts';
import type { RequestOutcome, StoredRequest } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';

/** What a hub stored this long before its last decision has long been audited. */
const WINDOW_MS = 10 * 60_000;
const MOST = 200;

export interface MissingDecisions {
  readonly store: Pick<Store, 'settledRequests' | 'session'>;
  /** This hub. */
  readonly hub: string;
  /** Decisions since then are audited by this incarnation. */
  readonly startedAt: number;
  readonly auditLog: string;
  readonly audit: AuditTrail;
}

/**
 * A decision is stored before it is audited: a hub that is killed in between, or while its log cannot be written, leaves
 * it to the next incarnation.
 */
export async function auditMissingDecisions({
  store,
  hub,
  startedAt,
  auditLog,
  audit,
}: MissingDecisions): Promise<void> {
  if (auditLog === 'off') return;
  const { items } = await store.settledRequests({ since: 0, limit: MOST });
  const own = items.filter(({ outcome }) => outcome?.hub === hub && outcome.at < startedAt);
  const newest = Math.max(...own.map(settledAt));
  const recent = own.filter((request) => settledAt(request) > newest - WINDOW_MS);
  if (recent.length === 0) return;
  const since = new Date(Math.min(...recent.map(settledAt)) - WINDOW_MS).toISOString();
  const { entries } = await readAudit(auditLog, { kind: 'decision', since });
  // What came of an action that was allowed is an entry of its own.
  const known = new Set(entries.flatMap(({ who, details }) => (who === 'server' ? [] : [details?.['request']])));
  for (const { id, sessionId, ask, outcome } of recent.reverse()) {
    const session = outcome && !known.has(id) ? await store.session(sessionId) : undefined;
    if (outcome && session) audit.record(missingRecord({ id, sessionId, ask }, outcome, session.principal));
  }
}

const settledAt = ({ outcome }: StoredRequest): number => outcome?.at ?? 0;

function missingRecord(
  { id, sessionId, ask }: Pick<StoredRequest, 'id' | 'sessionId' | 'ask'>,
  outcome: RequestOutcome,
  owner: string,
): AuditRecord {
  const { decision, source, at, byName, inputChanged, always, rule } = outcome;
  const by = outcome.by === source ? undefined : outcome.by;
  const given = decisionOf(outcome);
  const ran = inputChanged === true && given?.behavior === 'allow' ? given.updatedInput : undefined;
  return {
    kind: 'decision',
    session: sessionId,
    principal: by ?? owner,
    ...(byName !== undefined && { name: byName }),
    who: source as AuditActor,
    what: String(ask['toolName']),
    outcome: decision,
    details: {
      ...decisionDetails(
        id,
        owner,
        { decision: given, ...(by !== undefined && { by }), ...(always && { always }), ...(rule && { rule }) },
        ran,
      ),
      decidedAt: new Date(at).toISOString(),
    },
  };
}

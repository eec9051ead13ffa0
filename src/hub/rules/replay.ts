import { setImmediate } from 'node:timers/promises';
import { placeOfRequest } from '../../engine/rules/standing/suggest.ts';
import { RuleSet } from '../../engine/rules/standing/rule-set.ts';
import { summarizeTool } from '../../engine/conversation/tool-summary.ts';
import type { RequestRecord } from '../../schema/events.ts';
import type { StandingRule } from '../../schema/standing-rules.ts';
import type { StoredRequest } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';

const PAGE = 2_000;
const MAX_LISTED = 100;
const LINE_CHARS = 200;

export const REPLAY_DAYS = 30;

/** A stored request that a rule matches. */
export interface ReplayedRequest {
  readonly requestId: string;
  readonly sessionId: string;
  readonly toolName: string;
  readonly summary: string;
  /** What somebody decided, who that was, and when. */
  readonly decision: 'allow' | 'deny';
  readonly by: string;
  readonly source: string;
  readonly at: number;
}

/** What rules would have done with the requests that were stored. */
export interface Replay {
  /** How many requests were looked at. */
  readonly considered: number;
  readonly matched: number;
  /** Of those, what people allowed and denied; callers and time-outs are counted apart. */
  readonly allowed: number;
  readonly denied: number;
  readonly others: number;
  /** What people denied comes first, then the most recent. */
  readonly requests: readonly ReplayedRequest[];
}

type Asked = RequestRecord['ask'] & Pick<RequestRecord, 'cwd' | 'scope' | 'own'>;

/** Holds rules against the requests settled since then. A request that always needs a person is matched by none. */
export async function replayRules(
  rules: readonly StandingRule[],
  store: Pick<Store, 'settledRequests' | 'session'>,
  since: number,
): Promise<Replay> {
  const set = new RuleSet(rules);
  const owners = rules.some(({ principal }) => principal !== undefined) ? new Map<string, string>() : undefined;
  const matched: StoredRequest[] = [];
  let considered = 0;
  let after: string | undefined;
  do {
    const page = await store.settledRequests({ since, limit: PAGE, ...(after !== undefined && { after }) });
    for (const request of page.items) {
      if (request.outcome?.unasked) continue;
      considered++;
      const asked = request.ask as Asked;
      if (request.kind !== 'permission' || asked.own !== undefined) continue;
      const owner = owners ? await ownerOf(request.sessionId, owners, store) : '';
      const verdict = set.decide(asked, placeOfRequest(owner, asked), request.createdAt);
      if (!verdict || (verdict.decision === 'allow' && asked.needsPerson !== undefined)) continue;
      matched.push(request);
    }
    after = page.next;
    // A replay of many requests must not keep the hub from answering others.
    await setImmediate();
  } while (after !== undefined);
  return { considered, ...summary(matched) };
}

function summary(matched: readonly StoredRequest[]): Omit<Replay, 'considered'> {
  const decided = (decision: string): StoredRequest[] =>
    matched.filter(({ outcome }) => outcome?.source === 'human' && outcome.decision === decision);
  const [allowed, denied] = [decided('allow'), decided('deny')];
  const first = new Set(denied);
  const listed = [...denied, ...matched.filter((request) => !first.has(request))].slice(0, MAX_LISTED);
  return {
    matched: matched.length,
    allowed: allowed.length,
    denied: denied.length,
    others: matched.length - allowed.length - denied.length,
    requests: listed.map(replayed),
  };
}

function replayed({ id, sessionId, ask, outcome, createdAt }: StoredRequest): ReplayedRequest {
  const { toolName, input } = ask as Asked;
  const { decision = 'deny', by = '', source = '', at = createdAt } = outcome ?? {};
  return {
    requestId: id,
    sessionId,
    toolName,
    summary: summarizeTool(toolName, input, LINE_CHARS),
    decision,
    by,
    source,
    at,
  };
}

async function ownerOf(sessionId: string, known: Map<string, string>, store: Pick<Store, 'session'>): Promise<string> {
  const found = known.get(sessionId) ?? (await store.session(sessionId))?.principal ?? '';
  known.set(sessionId, found);
  return found;
}

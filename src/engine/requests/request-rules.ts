import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import { DomainError } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { EditPlace } from '../../schema/results.ts';
import type { Answer } from '../../schema/commands.ts';
import { alwaysOffer, exactCall } from './always.ts';
import { toDecision } from './answer.ts';
import type { OpenRequest, Outcome, OwnRequest, RequestBook, RequestContext, Source } from './requests.ts';
import { requestNotFound } from '../session/session-errors.ts';
import { refusingRule } from '../rules/tool-rules.ts';
import type { SessionRules } from '../rules/standing/session-rules.ts';
import type { RuleVerdict } from '../rules/standing/rule-set.ts';
import type { Refusal } from '../conversation/activity.ts';
import { isPlan } from '../conversation/agent-reports.ts';
import { oneLine } from '../conversation/tool-summary.ts';

const SAID_CHARS = 200;

/** The session's own rules for its requests: `disallowedTools` always refuses, whoever would allow it. */
export class RequestRules {
  readonly #book: RequestBook;
  readonly #options: () => SessionOptions;
  readonly #standing: SessionRules | undefined;
  /** Exact calls that are allowed from now on, and who allowed them. */
  #always: Map<string, Pick<Outcome, 'source' | 'by' | 'byName'>> | undefined;

  constructor(book: RequestBook, options: () => SessionOptions, standing: SessionRules | undefined) {
    this.#book = book;
    this.#options = options;
    this.#standing = standing;
  }

  /** Opens a request. Returns it only if it is still open, so that someone has to be asked. */
  ask(
    ask: PermissionAsk,
    timeoutMs: number,
    context: {
      /** The plan, where the request itself has none. */
      saidPlan: string;
      agent?: string | undefined;
      /** What Claude said about this call. */
      said?: string;
      edit?: EditPlace | undefined;
      target?: string | undefined;
      scope?: RequestContext['scope'];
      branch?: string | undefined;
      own?: OwnRequest;
      /** What the standing rules say about it. */
      verdict?: RuleVerdict | undefined;
    },
  ): { decision: Promise<Decision>; request: OpenRequest | undefined } {
    const { saidPlan, agent, edit, target, branch, scope, own, verdict } = context;
    const plan = ask.toolName === 'ExitPlanMode' ? planText(ask.input, saidPlan) : undefined;
    const { said: words = '' } = context;
    const said = words === '' || words === plan ? undefined : oneLine(words, SAID_CHARS);
    const { cwd } = this.#options();
    const decision = this.#book.open(ask, timeoutMs, { plan, said, agent, cwd, edit, target, branch, scope, own });
    const rule = this.refusedBy(ask.toolName, ask.input);
    if (rule !== undefined) {
      const message = `${rule} is disallowed in this session.`;
      this.#book.settle(ask.requestId, { behavior: 'deny', message }, 'policy', { disallowed: true });
    }
    if (verdict && verdict.decision !== 'ask') this.#settleByRule(ask.requestId, verdict);
    const allowed = this.#always?.get(exactCall(ask.toolName, ask.input));
    // Claude Code may ask for another reason this time, one for which it offers no lasting permission.
    if (allowed && verdict?.decision !== 'ask' && alwaysOffer(ask).kind === 'exact') {
      const { source, ...by } = allowed;
      this.#book.settle(ask.requestId, { behavior: 'allow' }, source, { always: true, ...by });
    }
    return { decision, request: this.#book.find(ask.requestId) };
  }

  #settleByRule(requestId: string, { decision, rule }: RuleVerdict): void {
    const { id, tool, match, note, createdBy: author } = rule;
    const reason = note === undefined ? '' : ` (${note})`;
    const message = `A standing rule denies ${match === undefined ? tool : `${tool}(${match})`} here${reason}. Continue without it, or say what you need and stop.`;
    const settled: Decision = decision === 'allow' ? { behavior: 'allow' } : { behavior: 'deny', message };
    this.#book.settle(requestId, settled, 'rule', { rule: { id, author } });
  }

  /**
   * What an answer means for Claude Code. Changed input must not get around the rules, which were checked against the
   * original.
   */
  decisionFor(requestId: string, answer: Answer, source: Source): { request: OpenRequest; decision: Decision } {
    const request = this.#book.find(requestId);
    if (!request) throw requestNotFound(requestId);
    const decision = toDecision(request, answer, source);
    if (decision.behavior === 'allow' && decision.updatedInput) {
      const rule = this.refusedBy(request.ask.toolName, decision.updatedInput);
      if (rule !== undefined)
        throw new DomainError('PERMISSION_DENIED', `updatedInput is refused by disallowedTools (${rule}).`);
    }
    return { request, decision };
  }

  /** From now on the same call is allowed without asking anyone: the one that ran, if the answer changed it. */
  allowAlways({ ask }: OpenRequest, decision: Decision, by: Pick<Outcome, 'source' | 'by' | 'byName'>): void {
    if (decision.behavior === 'deny' || alwaysOffer(ask).kind !== 'exact') return;
    this.#always ??= new Map();
    this.#always.set(exactCall(ask.toolName, decision.updatedInput ?? ask.input), by);
  }

  /** The rule of `disallowedTools` that refuses such a call. */
  refusedBy(toolName: string, input: Record<string, unknown>): string | undefined {
    const { disallowedTools = [], cwd = process.cwd() } = this.#options();
    return refusingRule(disallowedTools, { toolName, input, cwd });
  }

  /** The rule by which Claude Code refuses such a call without asking. */
  refusalOf(toolName: string, input: Record<string, unknown>): Refusal | undefined {
    const own = this.refusedBy(toolName, input);
    if (own !== undefined) return { by: 'disallowedTools', wholeTool: own === toolName };
    return this.#standing?.refusalOf(toolName, input);
  }
}

/** The plan comes in the request when Claude wrote its plan file; otherwise it is in Claude's call or words. */
function planText(input: Record<string, unknown>, saidPlan: string): string {
  return isPlan(input['plan']) ? input['plan'] : saidPlan;
}

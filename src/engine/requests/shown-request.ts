import { isDeepStrictEqual } from 'node:util';
import type { Decision } from '../../driver/permission-ask.ts';
import { DomainError } from '../../errors/errors.ts';
import type { RequestRecord } from '../../schema/events.ts';
import type { OpenRequest } from './requests.ts';
import { evenShare, marksIn, shortenTexts, textsIn } from '../conversation/tool-summary.ts';

/** Up to this length a decider sees everything; anything longer is shown in full on demand. */
export const SHOWN_CHARS = 32_000;
/** A request made of very many texts is not cut into crumbs. */
const SHORTEST = 200;

/** What somebody is asked to approve. */
export interface ShownRequest {
  input: Record<string, unknown>;
  plan: string | undefined;
  /** Full length in characters, if some are missing. */
  fullChars: number | undefined;
}

/** Deterministic: what comes back can be compared with what was shown. */
export function shownRequest({ id, ask: { input }, plan }: RequestRecord, whole = false): ShownRequest {
  // The plan is usually part of the input; then it is counted and cut as such.
  const ownPlan = plan === input['plan'] ? undefined : plan;
  const lengths = [...textsIn(input), ...textsIn(ownPlan)].map((text) => text.length);
  const share = Math.max(SHORTEST, whole ? Infinity : evenShare(lengths, SHOWN_CHARS));
  const shown = shortenTexts({ input, plan: ownPlan }, share, id);
  return {
    input: shown.value.input,
    plan: ownPlan === undefined && plan !== undefined ? (shown.value.input['plan'] as string) : shown.value.plan,
    fullChars: shown.cut ? lengths.reduce((sum, length) => sum + length, 0) : undefined,
  };
}

/**
 * The input to run instead of the requested one, or `undefined` if it is the same. Truncated text must never become
 * data, so any that comes back inside changed input is refused; a mark in the tool's original input may stay.
 */
export function changedInput(
  request: OpenRequest,
  updatedInput: Record<string, unknown> | undefined,
): Record<string, unknown> | undefined {
  const { input } = request.ask;
  if (updatedInput === undefined || isDeepStrictEqual(updatedInput, input)) return undefined;
  const { input: shown, plan } = shownRequest(request);
  const { plan: _, ...besidesPlan } = shown;
  const isShown = isDeepStrictEqual(updatedInput, shown);
  // Where the plan is shown beside the input, it is not part of it.
  if (isShown || (plan !== undefined && isDeepStrictEqual(updatedInput, besidesPlan))) return undefined;
  const own = new Set(textsIn(input).flatMap(marksIn));
  const stray = textsIn(updatedInput)
    .flatMap(marksIn)
    .find((mark) => !own.has(mark));
  if (stray === undefined) return updatedInput;
  throw new DomainError(
    'INVALID_ARGUMENT',
    `updatedInput contains the truncation mark "${stray}": it was made from truncated text, and would run or write that. ` +
      'Read the full request first (claude_code_check with responseMode "full", claude_get_status with inputId), or omit updatedInput to run the original input.',
  );
}

/** What runs instead of what was requested. The answers to a question are its answer, not a different input. */
export function ranInstead(
  { kind, ask }: Pick<RequestRecord, 'kind' | 'ask'>,
  decision: Decision,
): Record<string, unknown> | undefined {
  if (decision.behavior === 'deny' || kind === 'user_question') return undefined;
  return isDeepStrictEqual(decision.updatedInput, ask.input) ? undefined : decision.updatedInput;
}

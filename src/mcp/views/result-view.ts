import type { Session } from '../../engine/session.ts';
import { roundUsd } from '../../engine/totals.ts';
import { cutAt } from '../../engine/tool-summary.ts';

export interface ResultViewOptions {
  includeUsage: boolean;
  includeModelUsage: boolean;
  includeStructuredOutput: boolean;
  /** Where to read on in a long answer, and how much of it. */
  offset: number;
  maxChars: number;
}

/** The answer of the last call, or `undefined` while there is none. */
export function resultView(
  session: Session,
  options: ResultViewOptions,
): { result: Record<string, unknown>; cut: boolean } | undefined {
  const { result, totals } = session;
  if (!result || !session.atRest) return undefined;
  const rest = result.text.slice(options.offset);
  const text = rest.length > options.maxChars ? cutAt(rest, Math.max(1, options.maxChars)) : rest;
  const cut = text.length < rest.length || options.offset > 0;
  return {
    cut: text.length < rest.length,
    result: {
      sessionId: session.id,
      result: text,
      ...(cut && { resultChars: result.text.length }),
      isError: result.isError,
      durationMs: totals.call.durationMs,
      durationApiMs: totals.call.durationApiMs,
      numTurns: totals.call.turns,
      totalCostUsd: roundUsd(totals.call.costUsd),
      sessionTotalTurns: totals.session.turns,
      sessionTotalCostUsd: roundUsd(totals.session.costUsd),
      ...(options.includeStructuredOutput &&
        result.structuredOutput !== undefined && { structuredOutput: result.structuredOutput }),
      ...(result.stopReason !== undefined && { stopReason: result.stopReason }),
      ...(result.errorSubtype !== undefined && { errorSubtype: result.errorSubtype }),
      ...(options.includeUsage && { usage: totals.call.usage }),
      ...(options.includeModelUsage && { modelUsage: result.modelUsage }),
      ...(result.permissionDenials.length > 0 && {
        permissionDenials: denials(result.permissionDenials, options.includeModelUsage),
      }),
    },
  };
}

/** Inputs can be large; which tool was denied is enough in the short form. */
function denials(all: unknown[], full: boolean): unknown[] {
  return full ? all : all.map((denial) => ({ toolName: (denial as { tool_name?: unknown }).tool_name }));
}

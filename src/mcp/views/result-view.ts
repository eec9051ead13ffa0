import type { Activity, ToolUse } from '../../engine/activity.ts';
import type { Session } from '../../engine/session.ts';
import { roundUsd } from '../../engine/totals.ts';
import { cutAt } from '../../engine/tool-summary.ts';
import type { WorkDetail } from '../../schema/enums.ts';
import type { CallResult, PermissionDenial } from '../../schema/results.ts';
import { byteLength } from './shorten.ts';

export interface ResultViewOptions {
  includeUsage: boolean;
  includeModelUsage: boolean;
  includeStructuredOutput: boolean;
  includeWork: WorkDetail;
  /** Where to continue in a long answer, and how much of it. */
  offset: number;
  maxChars: number;
}

/** The answer of the last call, or `undefined` if there is none yet. */
export function resultView(
  session: Session,
  options: ResultViewOptions,
): { result: CallResult; cut: boolean } | undefined {
  const { result, totals, activity } = session;
  if (!result || !session.atRest) return undefined;
  const rest = result.text.slice(options.offset);
  const text = rest.length > options.maxChars ? cutAt(rest, Math.max(1, options.maxChars)) : rest;
  const cut = text.length < rest.length || options.offset > 0;
  const denials = denialsOf(result.permissionDenials, activity, options.includeModelUsage);
  const work = options.includeWork === 'full' ? session.fullWork : session.work;
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
      ...(totals.session.costUnknown && { costUnknown: true }),
      ...(options.includeStructuredOutput &&
        result.structuredOutput !== undefined && { structuredOutput: result.structuredOutput }),
      ...(result.stopReason !== undefined && { stopReason: result.stopReason }),
      ...(result.errorSubtype !== undefined && { errorSubtype: result.errorSubtype }),
      ...(options.includeUsage && { usage: totals.call.usage }),
      ...(options.includeModelUsage && { modelUsage: result.modelUsage }),
      ...(denials.length > 0 && { permissionDenials: denials }),
      ...(work && { work }),
    },
  };
}

/** What Claude Code counts as denied, and what else was; inputs can be large and appear only in the full form. */
function denialsOf(reported: readonly unknown[], activity: Activity, full: boolean): PermissionDenial[] {
  const shown = reported.map((denial): PermissionDenial => {
    const { tool_name: name, tool_use_id: id } = denial as { tool_name?: unknown; tool_use_id?: unknown };
    const use = typeof id === 'string' ? activity.findToolUse(id) : undefined;
    const raw = full && typeof denial === 'object' ? denial : {};
    return { ...raw, toolName: String(name), ...(typeof id === 'string' && { toolUseID: id }), ...whoDenied(use) };
  });
  const ids = new Set(shown.map(({ toolUseID }) => toolUseID));
  const others = activity.callProblems.filter(({ id, status }) => status === 'denied' && !ids.has(id));
  return [...shown, ...others.map((use) => ({ toolName: use.toolName, toolUseID: use.id, ...whoDenied(use) }))];
}

function whoDenied(use: ToolUse | undefined): Pick<PermissionDenial, 'what' | 'by'> {
  if (!use) return {};
  return { what: use.summary, ...(use.deniedBy !== undefined && { by: use.deniedBy }) };
}

/** A control character as JSON. */
const MAX_BYTES_PER_CHAR = '\\u0000'.length;

/** How many characters of a text fit into this many bytes as JSON. */
export function charsWithin(text: string, bytes: number): number {
  if (bytes === Infinity) return Infinity;
  if (text.length * MAX_BYTES_PER_CHAR + 2 <= bytes) return text.length;
  let chars = Math.floor(bytes);
  while (chars > 1 && byteLength(text.slice(0, chars)) > bytes) chars = Math.floor(chars * 0.8);
  return chars;
}

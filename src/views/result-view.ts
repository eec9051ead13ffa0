import type { SessionReading } from '../engine/conversation/reading.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { cutAt, shortenTexts } from '../engine/conversation/tool-summary.ts';
import { roundUsd } from '../engine/conversation/totals.ts';
import { DomainError } from '../errors/errors.ts';
import type { WorkDetail } from '../schema/enums.ts';
import type { ToolResultBlock } from '../schema/events.ts';
import type { ShownRecord } from '../schema/records.ts';
import type { CallResult, PermissionDenial, ToolCallView, Work } from '../schema/results.ts';
import { blocksOf } from './tool-names.ts';

/** Size of the fields around input and output. */
const OVERHEAD_BYTES = 400;

interface Recorded {
  toolName: string;
  input: Record<string, unknown>;
  result: ToolResultBlock | undefined;
}

/** One tool call: what ran, its output and how it ended. A long output is paged by `offset`. */
export function toolCallView(
  reading: SessionReading,
  toolUseID: string,
  { offset, maxBytes }: { offset: number; maxBytes: number },
): { call: ToolCallView; cut: string[] } {
  const recorded = recordedCall(reading, toolUseID);
  if (!recorded) {
    throw new DomainError(
      'INVALID_ARGUMENT',
      `No tool call ${toolUseID} in the retained events. The events of a poll identify calls by toolUseID.`,
    );
  }
  const { toolName, input, result } = recorded;
  const use = reading.findToolUse(toolUseID);
  const shownInput = offset > 0 ? undefined : shownWithin(input, maxBytes / 2, toolUseID);
  const room = Math.max(200, maxBytes - OVERHEAD_BYTES - byteLength(shownInput?.value));
  const rest = result?.output.slice(offset);
  const output = rest?.slice(0, charsWithin(rest, room));
  return {
    cut: [
      ...(shownInput?.cut ? ['toolCall.input'] : []),
      ...(output !== undefined && output.length < (rest?.length ?? 0) ? ['toolCall.output'] : []),
    ],
    call: {
      toolUseID,
      toolName,
      ...(shownInput && { input: shownInput.value }),
      ...(output !== undefined && { output, outputChars: result?.output.length }),
      outcome: use?.status ?? (result ? (result.isError ? 'failed' : 'completed') : 'running'),
      ...(result?.exitCode !== undefined && { exitCode: result.exitCode }),
      ...(use?.deniedBy !== undefined && { deniedBy: use.deniedBy }),
      ...(use?.inputChanged && { inputChanged: true }),
    },
  };
}

/** What ran is the input as changed by the answer. */
function recordedCall({ log }: SessionReading, toolUseID: string): Recorded | undefined {
  let result: ToolResultBlock | undefined;
  let changed: Record<string, unknown> | undefined;
  for (const { body } of log.newestFirst()) {
    const isDecided = body.kind === 'permission_result' || body.kind === 'repeated';
    if (isDecided && body.toolUseId === toolUseID) changed = body.input ?? changed;
    for (const block of blocksOf(body)) {
      if (!('toolUseId' in block) || block.toolUseId !== toolUseID) continue;
      if (block.kind === 'tool_call') return { toolName: block.toolName, input: changed ?? block.input, result };
      result ??= block;
    }
  }
  return undefined;
}

function shownWithin(
  input: Record<string, unknown>,
  maxBytes: number,
  seed: string,
): { value: Record<string, unknown>; cut: boolean } {
  if (byteLength(input) <= maxBytes) return { value: input, cut: false };
  return shortenTexts(input, Math.max(200, Math.floor(maxBytes / 4)), seed);
}

export interface ResultViewOptions {
  includeUsage: boolean;
  includeModelUsage: boolean;
  includeStructuredOutput: boolean;
  includeWork: WorkDetail;
  /** Where to continue in a long answer, and how much of it. */
  offset: number;
  maxChars: number;
}

/** The answer of the last call, or `undefined` if there is none yet. `fullWork` is asked for when all of it is wanted. */
export function resultView(
  record: ShownRecord,
  options: ResultViewOptions,
  fullWork?: () => Work | undefined,
): { result: CallResult; cut: boolean } | undefined {
  const { turn: result, totals, state } = record;
  if (!result || !isAtRest(state)) return undefined;
  const rest = result.text.slice(options.offset);
  const text = rest.length > options.maxChars ? cutAt(rest, Math.max(1, options.maxChars)) : rest;
  const cut = text.length < rest.length || options.offset > 0;
  const denials = denialsOf(record, options.includeModelUsage);
  const work = options.includeWork === 'full' && fullWork ? fullWork() : record.work;
  return {
    cut: text.length < rest.length,
    result: {
      sessionId: record.id,
      ...(work?.attention && { attention: work.attention }),
      result: text,
      ...(cut && { resultChars: result.text.length }),
      isError: result.isError,
      durationMs: totals.call.durationMs,
      durationApiMs: totals.call.durationApiMs,
      numTurns: totals.call.turns,
      totalCostUsd: roundUsd(totals.call.costUsd),
      sessionTotalTurns: totals.turns,
      sessionTotalCostUsd: roundUsd(totals.costUsd),
      ...(totals.costUnknown && { costUnknown: true }),
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

/** Inputs can be large and appear only in the full form. */
function denialsOf({ denials, turn }: ShownRecord, full: boolean): PermissionDenial[] {
  if (!full || !turn) return denials;
  return denials.map((denial, index) => {
    const raw = turn.permissionDenials[index];
    return { ...(typeof raw === 'object' && raw), ...denial };
  });
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

export function byteLength(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value) ?? '');
}

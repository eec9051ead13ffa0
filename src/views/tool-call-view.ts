import type { SessionReading } from '../engine/conversation/reading.ts';
import { shortenTexts } from '../engine/conversation/shortening.ts';
import { DomainError } from '../errors/errors.ts';
import type { ToolResultBlock } from '../schema/events.ts';
import type { ToolCallView } from '../schema/results.ts';
import { charsWithin, byteLength } from './result-view.ts';
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
    if (body.kind === 'permission_result' && body.toolUseId === toolUseID) changed = body.input ?? changed;
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

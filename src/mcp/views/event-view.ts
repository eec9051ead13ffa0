import type { SessionEvent } from '../../engine/event-log.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import { shortenText, tailOf } from '../../engine/shortening.ts';
import { oneLine, summarizeTool } from '../../engine/tool-summary.ts';
import type { EventView } from '../../schema/results.ts';
import { isObject } from '../arguments.ts';
import { requestSummary } from './action-view.ts';
import { blocksOf, toolResultOf, type Block, type ToolResult } from './tool-events.ts';

const RESULT_HEAD = 80;
const RESULT_TAIL = 80;
const TEXT_HEAD = 4_000;

interface Kept {
  type?: unknown;
  subtype?: unknown;
  message?: unknown;
  summary?: unknown;
  description?: unknown;
  content?: unknown;
  text?: unknown;
  result?: unknown;
}

/** What a model needs to follow along; `undefined` for what it does not need at all. */
export function minimalEvent(event: SessionEvent, toolNames: ReadonlyMap<string, string>): EventView | undefined {
  const data = minimalData(event, toolNames);
  return data === undefined ? undefined : withEnvelope(event, data);
}

export function withEnvelope({ id, type, timestamp }: SessionEvent, data: unknown): EventView {
  return { id, type, data, timestamp: new Date(timestamp).toISOString() };
}

/** A request in a line: whole it is among the actions. */
export function shortRequest(request: OpenRequest): object {
  const { id, kind, ask } = request;
  const { toolName, toolUseId: toolUseID } = ask;
  return { requestId: id, kind, toolName, toolUseID, summary: requestSummary(request) };
}

function minimalData(event: SessionEvent, toolNames: ReadonlyMap<string, string>): unknown {
  switch (event.type) {
    case 'output':
      return outputData(event, toolNames);
    case 'permission_request':
      return shortRequest(event.data as OpenRequest);
    case 'permission_result':
      return shortOutcome(event.data as { toolName: string; input?: Record<string, unknown> });
    case 'result': {
      const { subtype, result } = event.data as Kept;
      return { subtype, ...(typeof result === 'string' && { result: oneLine(result, 200) }) };
    }
    case 'error': {
      const { message, summary, subtype } = event.data as Kept;
      return { message: summary ?? message ?? subtype };
    }
    case 'progress':
      return progressData(event.data as Kept);
  }
}

function shortOutcome({ input, ...outcome }: { toolName: string; input?: Record<string, unknown> }): object {
  return input === undefined ? outcome : { ...outcome, ran: summarizeTool(outcome.toolName, input) };
}

function outputData(event: SessionEvent, toolNames: ReadonlyMap<string, string>): unknown {
  const texts: string[] = [];
  const tools: unknown[] = [];
  const results: unknown[] = [];
  for (const block of blocksOf(event)) {
    const result = toolResultOf(block);
    if (result) results.push(shortResult(result, toolNames));
    else if (block.type === 'text' && typeof block.text === 'string') texts.push(block.text);
    else if (block.type === 'tool_use') tools.push(shortCall(block));
  }
  if (texts.length + tools.length + results.length === 0) return undefined;
  const text = texts.join('\n');
  return {
    ...((event.data as Kept).type === 'user' && text !== '' && { role: 'user' }),
    ...(text !== '' && { text: shortenText(text, TEXT_HEAD, text) }),
    ...(tools.length > 0 && { tools }),
    ...(results.length > 0 && { results }),
  };
}

function shortCall({ name, id, input }: Block): object {
  const toolName = typeof name === 'string' ? name : 'tool';
  return { name: toolName, toolUseID: id, summary: summarizeTool(toolName, isObject(input) ? input : {}, 120) };
}

/** The head tells what it is, the tail how it ended. */
function shortResult(result: ToolResult, toolNames: ReadonlyMap<string, string>): object {
  const { toolUseID, output, isError, exitCode } = result;
  const toolName = toolNames.get(toolUseID);
  return {
    ...(toolName !== undefined && { toolName }),
    toolUseID,
    head: oneLine(output, RESULT_HEAD),
    ...(output.length > RESULT_HEAD && { tail: oneLine(tailOf(output, RESULT_TAIL), RESULT_TAIL) }),
    chars: output.length,
    isError,
    ...(exitCode !== undefined && { exitCode }),
  };
}

/** Heartbeats and streamed text are left out: they say nothing that will not be said again. */
function progressData(data: Kept): unknown {
  const kind = typeof data.subtype === 'string' ? data.subtype : data.type;
  if (kind === 'tool_progress' || kind === 'partial' || kind === 'status' || kind === 'init') return undefined;
  const words = [data.summary, data.description, data.content, data.text].find((text) => typeof text === 'string');
  return { kind, ...(typeof words === 'string' && { text: oneLine(words, 160) }) };
}

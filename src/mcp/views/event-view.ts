import type { SessionEvent } from '../../engine/event-log.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import { shortenText } from '../../engine/shortening.ts';
import { oneLine, summarizeTool } from '../../engine/tool-summary.ts';
import { actionView, requestSummary } from './action-view.ts';

export interface EventView {
  id: number;
  type: SessionEvent['type'];
  data: unknown;
  timestamp: string;
}

/** Everything that was kept. */
export function fullEvent(event: SessionEvent): EventView {
  const data = event.type === 'permission_request' ? actionView(event.data as OpenRequest, true) : event.data;
  return { id: event.id, type: event.type, data, timestamp: new Date(event.timestamp).toISOString() };
}

/** What a model needs to follow along; `undefined` for what it does not need at all. */
export function minimalEvent(event: SessionEvent): EventView | undefined {
  const data = minimalData(event);
  if (data === undefined) return undefined;
  return { id: event.id, type: event.type, data, timestamp: new Date(event.timestamp).toISOString() };
}

const RESULT_HEAD = 80;
const TEXT_HEAD = 4_000;

interface Block {
  type?: unknown;
  text?: unknown;
  name?: unknown;
  input?: unknown;
  content?: unknown;
  is_error?: unknown;
}

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

function minimalData(event: SessionEvent): unknown {
  switch (event.type) {
    case 'output':
      return outputData(event.data as Kept);
    case 'permission_request': {
      const request = event.data as OpenRequest;
      return { requestId: request.id, kind: request.kind, summary: requestSummary(request) };
    }
    case 'permission_result':
      return event.data;
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

function outputData({ type, message }: Kept): unknown {
  const content = (message as { content?: unknown } | undefined)?.content;
  const blocks: Block[] =
    typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : Array.isArray(content)
        ? (content as Block[])
        : [];
  const texts: string[] = [];
  const tools: unknown[] = [];
  const results: unknown[] = [];
  for (const block of blocks) {
    if (block.type === 'text' && typeof block.text === 'string') texts.push(block.text);
    else if (block.type === 'tool_use') tools.push(toolCall(block));
    else if (block.type === 'tool_result') results.push(toolResult(block));
  }
  if (texts.length + tools.length + results.length === 0) return undefined;
  const text = texts.join('\n');
  return {
    ...(type === 'user' && text !== '' && { role: 'user' }),
    ...(text !== '' && { text: shortenText(text, TEXT_HEAD, text) }),
    ...(tools.length > 0 && { tools }),
    ...(results.length > 0 && { results }),
  };
}

function toolCall({ name, input }: Block): { name: string; summary: string } {
  const toolName = typeof name === 'string' ? name : 'tool';
  return { name: toolName, summary: summarizeTool(toolName, isRecord(input) ? input : {}, 120) };
}

function toolResult({ content, is_error: isError }: Block): { head: string; chars: number; isError: boolean } {
  const text = resultText(content);
  return { head: oneLine(text, RESULT_HEAD), chars: text.length, isError: isError === true };
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as Block[]).map(({ text }) => (typeof text === 'string' ? text : '')).join('\n');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Heartbeats and streamed text are left out: they say nothing that will not be said again. */
function progressData(data: Kept): unknown {
  const kind = typeof data.subtype === 'string' ? data.subtype : data.type;
  if (kind === 'tool_progress' || kind === 'partial' || kind === 'status' || kind === 'init') return undefined;
  const words = [data.summary, data.description, data.content, data.text].find((text) => typeof text === 'string');
  return { kind, ...(typeof words === 'string' && { text: oneLine(words, 160) }) };
}

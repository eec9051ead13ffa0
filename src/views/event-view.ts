import { shortenText, tailOf } from '../engine/conversation/shortening.ts';
import { oneLine, summarizeTool } from '../engine/conversation/tool-summary.ts';
import type {
  EventBody,
  MessageBody,
  RequestRecord,
  SessionEvent,
  ToolCallBlock,
  ToolResultBlock,
} from '../schema/events.ts';
import type { EventView } from '../schema/results.ts';
import { requestSummary } from './action-view.ts';
import type { ToolNames } from './tool-names.ts';

const RESULT_HEAD = 80;
const RESULT_TAIL = 80;
const TEXT_HEAD = 4_000;
const NOTICE_CHARS = 160;
/** They say nothing that will not be said again. */
const HEARTBEATS: ReadonlySet<string> = new Set(['tool_progress', 'status', 'init']);

/** What a model needs to follow along; `undefined` if it needs nothing. */
export function minimalEvent(event: SessionEvent, toolNames: ToolNames): EventView | undefined {
  const data = minimalData(event, toolNames);
  return data === undefined ? undefined : withEnvelope(event, data);
}

export function withEnvelope({ id, type, at }: Pick<SessionEvent, 'id' | 'type' | 'at'>, data: unknown): EventView {
  return { id, type, data, timestamp: new Date(at).toISOString() };
}

/** A request in one line: it is shown in full among the actions. */
export function shortRequest(request: RequestRecord): object {
  const { id, kind, ask } = request;
  const { toolName, toolUseId: toolUseID } = ask;
  return { requestId: id, kind, toolName, toolUseID, summary: requestSummary(request) };
}

function minimalData({ body }: SessionEvent, toolNames: ToolNames): unknown {
  switch (body.kind) {
    case 'message':
      return messageData(body, toolNames);
    case 'permission_request':
      return shortRequest(body.request);
    case 'permission_result': {
      const { input, ...outcome } = permissionOutcome(body);
      return input === undefined ? outcome : { ...outcome, ran: summarizeTool(body.toolName, input) };
    }
    case 'result':
      return {
        subtype: body.subtype,
        ...(body.subtype === 'success' && { result: oneLine(body.result.text, 200) }),
      };
    case 'error':
      return { message: body.message };
    case 'writes_lost':
      return { message: body.name };
    case 'retry':
      return body.loginRefused ? { message: body.summary } : notice('api_retry', body.summary);
    case 'background_tasks':
      return notice('background_tasks_changed');
    case 'tool_refused':
      return notice('permission_denied');
    case 'rewind':
    case 'apply':
    case 'discard':
      return notice(body.kind);
    case 'notice':
      return HEARTBEATS.has(body.name) ? undefined : notice(body.name, body.text);
    case 'prompt':
    case 'partial':
    case 'init':
    case 'status':
      return undefined;
  }
}

/** How a request was settled, in the established format. */
export function permissionOutcome(body: Extract<EventBody, { kind: 'permission_result' }>) {
  const { kind: _kind, toolUseId: toolUseID, requestId, toolName, input, ...outcome } = body;
  return { requestId, toolName, toolUseID, ...outcome, ...(input && { inputChanged: true as const, input }) };
}

function notice(kind: string, text?: string): object {
  return { kind, ...(text !== undefined && { text: oneLine(text, NOTICE_CHARS) }) };
}

function messageData({ role, blocks }: MessageBody, toolNames: ToolNames): unknown {
  const texts: string[] = [];
  const tools: unknown[] = [];
  const results: unknown[] = [];
  for (const block of blocks) {
    if (block.kind === 'tool_result') results.push(shortResult(block, toolNames));
    else if (block.kind === 'text') texts.push(block.text);
    else if (block.kind === 'tool_call') {
      toolNames.add(block);
      tools.push(shortCall(block));
    }
  }
  if (texts.length + tools.length + results.length === 0) return undefined;
  const text = texts.join('\n');
  return {
    ...(role === 'user' && text !== '' && { role }),
    ...(text !== '' && { text: shortenText(text, TEXT_HEAD, text) }),
    ...(tools.length > 0 && { tools }),
    ...(results.length > 0 && { results }),
  };
}

function shortCall({ toolName, toolUseId, input }: ToolCallBlock): object {
  return { name: toolName, toolUseID: toolUseId, summary: summarizeTool(toolName, input, 120) };
}

/** The head shows what it is, the tail how it ended. */
function shortResult({ toolUseId, output, isError, exitCode }: ToolResultBlock, toolNames: ToolNames): object {
  const toolName = toolNames.of(toolUseId);
  const head = oneLine(output, RESULT_HEAD);
  const tail = output.length > RESULT_HEAD ? oneLine(tailOf(output, RESULT_TAIL), RESULT_TAIL) : undefined;
  return present({ toolName, toolUseID: toolUseId, head, tail, chars: output.length, isError, exitCode });
}

/** Omits undefined fields. A poll makes hundreds of these: spreading is several times slower. */
function present(fields: Record<string, unknown>): object {
  const shown: Record<string, unknown> = {};
  for (const name in fields) if (fields[name] !== undefined) shown[name] = fields[name];
  return shown;
}

import { originalMessage } from '../driver/original.ts';
import type { SessionReading } from '../engine/conversation/reading.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { oneLine, shortenText, summarizeTool, tailOf, textsIn } from '../engine/conversation/tool-summary.ts';
import type {
  EventBody,
  MessageBody,
  Original,
  RequestRecord,
  SessionEvent,
  ToolCallBlock,
  ToolResultBlock,
} from '../schema/events.ts';
import { isObject } from '../schema/json.ts';
import type { EventView } from '../schema/results.ts';
import { actionView, requestSummary } from './action-view.ts';
import { blocksOf, type ToolNames } from './tool-names.ts';

/** A shorter text may appear in two places by chance. */
const SHORTEST_DOUBLE = 40;

export interface FullEventContext {
  reading: SessionReading;
  toolNames: ToolNames;
  /** What the answer shows about the session anyway. */
  shows: { actions: boolean; result: boolean; usage: boolean; modelUsage: boolean };
}

/** Everything that was kept, except what the same answer says elsewhere. */
export function fullEvent(event: SessionEvent, context: FullEventContext): EventView {
  const { body, original } = event;
  return { ...withEnvelope(event, fullData(body, original, context)), ...toolOf(body, context.toolNames) };
}

function fullData(body: EventBody, original: Original | undefined, context: FullEventContext): unknown {
  if (!original) return ownData(body, context);
  const message = originalMessage(original, body);
  if (!isObject(message)) return message;
  if (body.kind === 'message') return withoutRepeatedOutput(message, body);
  return body.kind === 'result' ? withoutShownResult(message, body, context) : message;
}

/** What the server itself recorded. */
function ownData(body: EventBody, context: FullEventContext): unknown {
  if (body.kind === 'permission_request') return requestData(body.request, context);
  if (body.kind === 'permission_result') return permissionOutcome(body);
  const { kind: type, ...data } = body;
  return { type, ...data };
}

function requestData(request: RequestRecord, { reading, shows }: FullEventContext): unknown {
  const isShown = shows.actions && reading.requests.some(({ id }) => id === request.id);
  return isShown ? shortRequest(request) : actionView(request, { now: reading.now, whole: true, once: false });
}

/** A tool result comes as text and again in fields: what the text contains is omitted from the fields. */
function withoutRepeatedOutput(whole: Record<string, unknown>, body: EventBody): unknown {
  const { tool_use_result: fields, ...message } = whole;
  if (fields === undefined) return whole;
  const outputs = blocksOf(body).flatMap((block) => (block.kind === 'tool_result' ? block.output : []));
  // Files are shown with line numbers in the text.
  const shown = outputs.flatMap((output) => [output, output.replace(/^ *\d+[\t→]/gm, '')]);
  const rest = without(
    fields,
    (text) => text.length >= SHORTEST_DOUBLE && shown.some((output) => output.includes(text.trimEnd())),
  );
  return rest === undefined ? message : { ...message, tool_use_result: rest };
}

function without(value: unknown, isDouble: (text: string) => boolean): unknown {
  if (typeof value === 'string') return isDouble(value) ? undefined : value;
  if (typeof value !== 'object' || value === null || !textsIn(value).some(isDouble)) return value;
  if (Array.isArray(value)) return value.map((item) => without(item, isDouble) ?? null);
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, item]) => [name, without(item, isDouble)] as const)
      .filter(([, item]) => item !== undefined),
  );
}

/** The last result is shown as `result` at rest. */
function withoutShownResult(
  message: Record<string, unknown>,
  { subtype, result }: Extract<EventBody, { kind: 'result' }>,
  { reading, shows }: FullEventContext,
): unknown {
  const isShown =
    shows.result &&
    isAtRest(reading.record.state) &&
    subtype === 'success' &&
    result.text === reading.record.turn?.text;
  if (!isShown) return message;
  const {
    result: _text,
    structured_output: _output,
    permission_denials: _denials,
    usage,
    modelUsage,
    ...rest
  } = message;
  return { ...rest, ...(!shows.usage && { usage }), ...(!shows.modelUsage && { modelUsage }) };
}

function toolOf(body: EventBody, toolNames: ToolNames): Pick<EventView, 'toolName' | 'toolUseID'> {
  const blocks = blocksOf(body);
  for (const block of blocks) if (block.kind === 'tool_call') toolNames.add(block);
  const [only, ...others] = blocks.flatMap((block) => ('toolUseId' in block ? block.toolUseId : []));
  if (only === undefined || others.length > 0) return {};
  const toolName = toolNames.of(only);
  return { toolUseID: only, ...(toolName !== undefined && { toolName }) };
}

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

function withEnvelope({ id, type, at }: Pick<SessionEvent, 'id' | 'type' | 'at'>, data: unknown): EventView {
  return { id, type, data, timestamp: new Date(at).toISOString() };
}

/** A request in one line: it is shown in full among the actions. */
function shortRequest(request: RequestRecord): object {
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
    case 'repeated': {
      const { toolUseId: toolUseID, requestId, input } = body;
      const ran = input && { inputChanged: true, ran: summarizeTool(body.toolName, input) };
      return { kind: body.kind, requestId, toolName: body.toolName, toolUseID, ...ran };
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
function permissionOutcome(body: Extract<EventBody, { kind: 'permission_result' }>) {
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

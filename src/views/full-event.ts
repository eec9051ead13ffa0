import { originalMessage } from '../driver/original.ts';
import type { SessionReading } from '../engine/conversation/reading.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { textsIn } from '../engine/conversation/shortening.ts';
import type { EventBody, Original, RequestRecord, SessionEvent } from '../schema/events.ts';
import type { EventView } from '../schema/results.ts';
import { actionView } from './action-view.ts';
import { permissionOutcome, shortRequest, withEnvelope } from './event-view.ts';
import { blocksOf, type ToolNames } from './tool-names.ts';
import { isObject } from '../schema/json.ts';

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

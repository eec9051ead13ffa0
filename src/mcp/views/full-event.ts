import type { SessionEvent } from '../../engine/event-log.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import type { Session } from '../../engine/session.ts';
import { textsIn } from '../../engine/shortening.ts';
import type { EventView } from '../../schema/results.ts';
import { actionView } from './action-view.ts';
import { shortRequest, withEnvelope } from './event-view.ts';
import { blocksOf, toolResultOf } from './tool-events.ts';

/** A shorter text may be in two places by chance. */
const SHORTEST_DOUBLE = 40;

export interface FullEventContext {
  session: Session;
  toolNames: ReadonlyMap<string, string>;
  /** What the answer shows of the session anyway. */
  shows: { actions: boolean; result: boolean; usage: boolean; modelUsage: boolean };
}

/** Everything that was kept, but nothing that the same answer says elsewhere. */
export function fullEvent(event: SessionEvent, context: FullEventContext): EventView {
  return { ...withEnvelope(event, fullData(event, context)), ...toolOf(event, context.toolNames) };
}

function fullData(event: SessionEvent, context: FullEventContext): unknown {
  switch (event.type) {
    case 'permission_request':
      return requestData(event.data as OpenRequest, context);
    case 'output':
      return withoutRepeatedOutput(event);
    case 'result':
      return withoutShownResult(event, context);
    case 'permission_result':
    case 'progress':
    case 'error':
      return event.data;
  }
}

function requestData(request: OpenRequest, { session, shows }: FullEventContext): unknown {
  const isShown = shows.actions && session.findRequest(request.id) !== undefined;
  return isShown ? shortRequest(request) : actionView(request, { now: session.now, whole: true });
}

/** The result of a tool comes as text and once more in fields: what the text has is left out of those. */
function withoutRepeatedOutput(event: SessionEvent): unknown {
  const { tool_use_result: fields, ...message } = event.data as { tool_use_result?: unknown };
  if (fields === undefined) return event.data;
  const outputs = blocksOf(event).flatMap((block) => toolResultOf(block)?.output ?? []);
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
function withoutShownResult(event: SessionEvent, { session, shows }: FullEventContext): unknown {
  const data = event.data as Record<string, unknown>;
  if (!shows.result || !session.atRest || data['result'] !== session.result?.text) return data;
  const { result: _text, structured_output: _output, permission_denials: _denials, usage, modelUsage, ...rest } = data;
  return { ...rest, ...(!shows.usage && { usage }), ...(!shows.modelUsage && { modelUsage }) };
}

/** Results do not say which tool they are of. */
function toolOf(
  event: SessionEvent,
  toolNames: ReadonlyMap<string, string>,
): Pick<EventView, 'toolName' | 'toolUseID'> {
  const ids = blocksOf(event).map((block) => (block.type === 'tool_use' ? block.id : toolResultOf(block)?.toolUseID));
  const [only, ...others] = ids.filter((id) => typeof id === 'string');
  if (only === undefined || others.length > 0) return {};
  const toolName = toolNames.get(only);
  return { toolUseID: only, ...(toolName !== undefined && { toolName }) };
}

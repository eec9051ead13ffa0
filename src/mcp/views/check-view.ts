import type { SessionEvent } from '../../engine/event-log.ts';
import type { Session } from '../../engine/session.ts';
import { shortenTexts } from '../../engine/shortening.ts';
import { actionView, askedPerson } from './action-view.ts';
import { activityLine, QUIET_AFTER_MS } from './activity-line.ts';
import { fullEvent, minimalEvent, type EventView } from './event-view.ts';
import { resultView } from './result-view.ts';
import { byteLength } from './shorten.ts';
import { describeTools } from './tool-catalogue.ts';
import { compactStatus } from './status.ts';

export interface CheckViewOptions {
  cursor: number | undefined;
  mode: 'minimal' | 'full';
  maxEvents: number;
  maxBytes: number;
  includeEvents: boolean;
  /** Whether a caller that takes no events is told where it stands. */
  includeCursor: boolean;
  includeTools: boolean;
  includeActions: boolean;
  includeResult: boolean;
  includeUsage: boolean;
  includeModelUsage: boolean;
  includeStructuredOutput: boolean;
  includeTerminalEvents: boolean;
  includeProgressEvents: boolean;
  resultOffset: number;
}

/** Room that status, counters and the envelope may take. */
const OVERHEAD_BYTES = 1_200;
const MIN_EVENT_TEXT = 200;

/** What `claude_code_check` answers. Everything that is cut is named in `truncatedFields`. */
export function checkView(session: Session, options: CheckViewOptions): Record<string, unknown> {
  const truncated = new Set<string>();
  const view: Record<string, unknown> = { sessionId: session.id, ...statusFields(session) };
  if (options.includeActions) addActions(view, session, options, truncated);
  if (options.includeResult) addResult(view, session, options, truncated);
  if (options.includeTools && session.tools) view['availableTools'] = describeTools(session.tools);
  addEvents(view, session, options, truncated);
  if (truncated.size > 0) {
    view['truncated'] = true;
    view['truncatedFields'] = [...truncated];
  }
  return view;
}

function statusFields(session: Session): Record<string, unknown> {
  const status = compactStatus(session);
  const { cancellation, backgroundTasks, quietMs, activity } = session;
  return {
    status,
    ...(status === 'running' && { pollInterval: 3000 }),
    ...(status === 'waiting_permission' && { pollInterval: 1000 }),
    activity: activityLine(session),
    ...(backgroundTasks > 0 && { backgroundTasks }),
    ...(!session.atRest && quietMs >= QUIET_AFTER_MS && { quietMs }),
    ...(cancellation && {
      cancelledAt: new Date(cancellation.at).toISOString(),
      cancelledReason: cancellation.reason,
      cancelledSource: cancellation.source,
    }),
    lastEventId: session.log.nextId - 1,
    ...(activity.lastToolUseId !== undefined && { lastToolUseId: activity.lastToolUseId }),
  };
}

function addActions(
  view: Record<string, unknown>,
  session: Session,
  options: CheckViewOptions,
  truncated: Set<string>,
): void {
  if (session.requests.length === 0) return;
  view['actions'] = session.requests.map((request) => {
    const action = actionView(request, options.mode === 'full');
    if (action['inputTruncated'] === true) truncated.add('actions');
    return { ...action, ...askedPerson(session, request) };
  });
}

function addResult(
  view: Record<string, unknown>,
  session: Session,
  options: CheckViewOptions,
  truncated: Set<string>,
): void {
  const share = options.includeEvents ? options.maxBytes / 2 : options.maxBytes;
  const structured = options.includeStructuredOutput ? session.result?.structuredOutput : undefined;
  // It is of use only whole. The answer holds it as text, which can be read on.
  const fits = byteLength(structured) <= Math.max(MIN_EVENT_TEXT, share - OVERHEAD_BYTES);
  const room = Math.max(MIN_EVENT_TEXT, share - OVERHEAD_BYTES - (fits ? byteLength(structured) : 0));
  const shown = resultView(session, {
    ...options,
    includeStructuredOutput: options.includeStructuredOutput && fits,
    offset: options.resultOffset,
    maxChars: charsWithin(session, options.resultOffset, room),
  });
  if (!shown) return;
  view['result'] = shown.result;
  if (shown.cut) truncated.add('result');
  if (!fits) truncated.add('result.structuredOutput');
}

/** How many characters of the answer fit into so many bytes as JSON. */
function charsWithin(session: Session, offset: number, bytes: number): number {
  const text = session.result?.text ?? '';
  if (bytes === Infinity) return Infinity;
  let chars = Math.floor(bytes);
  while (chars > 1 && byteLength(text.slice(offset, offset + chars)) > bytes) chars = Math.floor(chars * 0.8);
  return chars;
}

function addEvents(
  view: Record<string, unknown>,
  session: Session,
  options: CheckViewOptions,
  truncated: Set<string>,
): void {
  const from = Math.min(options.cursor ?? 0, session.log.nextId);
  if (!options.includeEvents) {
    if (options.includeCursor) view['nextCursor'] = session.log.nextId;
    return;
  }
  const { events, resetTo } = session.log.from(from);
  const page = eventPage(events, options, options.maxBytes - OVERHEAD_BYTES - byteLength(view), truncated);
  const nextCursor = page.stoppedBefore ?? session.log.nextId;
  session.log.markDelivered(nextCursor - 1);
  view['events'] = page.events;
  view['nextCursor'] = nextCursor;
  if (resetTo !== undefined && options.cursor !== undefined) view['cursorResetTo'] = resetTo;
}

interface EventPage {
  events: EventView[];
  /** The first event that did not fit. */
  stoppedBefore: number | undefined;
}

function eventPage(
  all: readonly SessionEvent[],
  options: CheckViewOptions,
  room: number,
  truncated: Set<string>,
): EventPage {
  const events: EventView[] = [];
  let used = 0;
  for (const event of all) {
    if (!isWanted(event, options)) continue;
    let view = options.mode === 'full' ? fullEvent(event) : minimalEvent(event);
    if (!view) continue;
    if (events.length >= options.maxEvents) return stop(events, event, truncated);
    let size = byteLength(view);
    if (used + size > room) {
      if (events.length > 0) return stop(events, event, truncated);
      // One event must get through, however small the room: a cursor that stands still would be asked for ever.
      view = {
        ...view,
        data: shortenTexts(view.data, Math.max(MIN_EVENT_TEXT, Math.floor(room / 4)), `event ${String(event.id)}`)
          .value,
      };
      if (byteLength(view) > Math.max(room, 2_000)) view = { ...view, data: { shortened: true, bytes: size } };
      truncated.add('events');
      size = byteLength(view);
    }
    used += size;
    events.push(view);
  }
  return { events, stoppedBefore: undefined };
}

function stop(events: EventView[], next: SessionEvent, truncated: Set<string>): EventPage {
  truncated.add('events');
  return { events, stoppedBefore: next.id };
}

function isWanted({ type, data }: SessionEvent, options: CheckViewOptions): boolean {
  if (type === 'progress') return options.includeProgressEvents;
  if (type === 'result') return options.includeTerminalEvents;
  // An error that did not end anything, such as a refused login that is tried again, is news at any time.
  if (type === 'error') return options.includeTerminalEvents || (data as { type?: unknown }).type !== 'error';
  return true;
}

import type { SessionReading } from '../engine/conversation/reading.ts';
import { QUIET_AFTER_MS } from '../engine/session/session-record.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { shortenTexts } from '../engine/conversation/tool-summary.ts';
import type { ResponseMode, WorkDetail } from '../schema/enums.ts';
import type { RequestRecord, SessionEvent } from '../schema/events.ts';
import type { Action, CheckAnswer, EventView } from '../schema/results.ts';
import { actionView, askedPerson } from './action-view.ts';
import { fullEvent, minimalEvent } from './event-view.ts';
import { byteLength, charsWithin, resultView, toolCallView } from './result-view.ts';
import { compactStatus } from './status.ts';
import { describeTools, ToolNames } from './tool-names.ts';

export interface CheckViewOptions {
  cursor: number | undefined;
  mode: ResponseMode;
  maxEvents: number;
  maxBytes: number;
  includeEvents: boolean;
  includeTools: boolean;
  includeActions: boolean;
  includeResult: boolean;
  includeUsage: boolean;
  includeModelUsage: boolean;
  includeStructuredOutput: boolean;
  includeWork: WorkDetail;
  includeTerminalEvents: boolean;
  includeProgressEvents: boolean;
  resultOffset: number;
  /** A tool call to show whole. */
  toolUseID: string | undefined;
  /** Requests that are only named. */
  omitted?: ReadonlySet<string>;
}

/** Room that status, counters and the envelope may take. */
const OVERHEAD_BYTES = 1_200;
const MIN_EVENT_TEXT = 200;

/** Room for the fields of one of several sessions that are always there. */
const ENTRY_BYTES = 300;

/**
 * What it returns about several sessions, which share `maxBytes`. Requests come first, the oldest whole: one that is
 * shown in part cannot be decided.
 */
export function checkViews(readings: readonly SessionReading[], options: CheckViewOptions): CheckAnswer[] {
  const open = readings.flatMap((reading) => reading.requests.map((request) => ({ reading, request })));
  let room = options.maxBytes - readings.length * ENTRY_BYTES;
  const omitted = new Set<string>();
  for (const { reading, request } of open.sort((a, b) => a.request.createdAt - b.request.createdAt)) {
    if (!options.includeActions) break;
    const size = byteLength(shownAction(reading, request, options));
    if (omitted.size > 0 || size > room) omitted.add(request.id);
    else room -= size;
  }
  const maxBytes = Math.max(0, room) / readings.length + ENTRY_BYTES;
  return readings.map((reading) => checkView(reading, { ...options, maxBytes, omitted }));
}

/** What `claude_code_check` returns. Everything truncated is listed in `truncatedFields`. */
export function checkView(reading: SessionReading, options: CheckViewOptions): CheckAnswer {
  const { record } = reading;
  const truncated = new Set<string>();
  const view: Omit<CheckAnswer, 'nextCursor'> = {
    sessionId: record.id,
    ...statusFields(reading, options),
    ...(options.includeActions && actionFields(reading, options, truncated)),
    ...(options.includeResult && resultFields(reading, options, truncated)),
    ...(options.toolUseID !== undefined && toolCallFields(reading, options.toolUseID, options, truncated)),
    ...(options.includeTools && record.tools && { availableTools: describeTools(record.tools) }),
  };
  const events = eventFields(reading, options, view, truncated);
  return {
    ...view,
    ...events,
    ...(truncated.size > 0 && { truncated: true, truncatedFields: [...truncated] }),
  };
}

type Fields<Name extends keyof CheckAnswer> = Pick<CheckAnswer, Name>;

function statusFields(
  { record, log, requests }: SessionReading,
  { mode, includeActions }: CheckViewOptions,
): Omit<CheckAnswer, 'sessionId' | 'nextCursor'> {
  const status = compactStatus(record);
  const { state, cancellation, backgroundTasks, quietMs, activity, lastAction, lastToolUseId } = record;
  return {
    status,
    ...(status === 'running' && { pollInterval: 3000 }),
    ...(status === 'waiting_permission' && { pollInterval: 1000 }),
    // The requests say it too, and more.
    ...((mode === 'full' || !includeActions || requests.length === 0) && { activity }),
    ...(lastAction && { lastAction }),
    ...(backgroundTasks > 0 && { backgroundTasks }),
    ...(!isAtRest(state) && quietMs >= QUIET_AFTER_MS && { quietMs }),
    ...(cancellation && {
      cancelledAt: new Date(cancellation.at).toISOString(),
      cancelledReason: cancellation.reason,
      cancelledSource: cancellation.source,
    }),
    ...(mode === 'full' && { lastEventId: log.nextId - 1, ...(lastToolUseId !== undefined && { lastToolUseId }) }),
  };
}

/** Not limited by `maxBytes`: what someone is asked to approve has its own, larger limit. */
function actionFields(
  reading: SessionReading,
  options: CheckViewOptions,
  truncated: Set<string>,
): Partial<Fields<'actions'>> {
  const { requests } = reading;
  if (requests.length === 0) return {};
  const actions = requests.map((request) => {
    const isOmitted = options.omitted?.has(request.id) === true;
    const shown = isOmitted ? undefined : shownAction(reading, request, options);
    if (!shown || shown.inputTruncated) truncated.add('actions');
    return shown ?? { requestId: request.id, toolName: request.ask.toolName, omitted: true as const };
  });
  return { actions };
}

function shownAction(reading: SessionReading, request: RequestRecord, { mode }: CheckViewOptions): Action {
  const options = { now: reading.now, whole: mode === 'full', once: mode === 'minimal' };
  return { ...actionView(request, options), ...askedPerson(reading, request) };
}

function resultFields(
  reading: SessionReading,
  options: CheckViewOptions,
  truncated: Set<string>,
): Partial<Fields<'result'>> {
  const { turn, work } = reading.record;
  const share = options.includeEvents ? options.maxBytes / 2 : options.maxBytes;
  const structured = options.includeStructuredOutput ? turn?.structuredOutput : undefined;
  // Only useful in full. The answer also has it as text, which can be read in parts.
  const size = byteLength(structured);
  const fits = size <= Math.max(MIN_EVENT_TEXT, share - OVERHEAD_BYTES);
  const besides = (fits ? size : 0) + byteLength(work) + byteLength(work?.attention);
  const room = Math.max(MIN_EVENT_TEXT, share - OVERHEAD_BYTES - besides);
  const offset = options.toolUseID === undefined ? options.resultOffset : 0;
  const shown = resultView(
    reading.record,
    {
      ...options,
      includeStructuredOutput: options.includeStructuredOutput && fits,
      offset,
      maxChars: charsWithin((turn?.text ?? '').slice(offset), room),
    },
    () => reading.fullWork(),
  );
  if (!shown) return {};
  if (shown.cut) truncated.add('result');
  if (!fits) truncated.add('result.structuredOutput');
  return { result: shown.result };
}

function toolCallFields(
  reading: SessionReading,
  toolUseID: string,
  { resultOffset: offset, maxBytes }: CheckViewOptions,
  truncated: Set<string>,
): Fields<'toolCall'> {
  const { call, cut } = toolCallView(reading, toolUseID, { offset, maxBytes: maxBytes - OVERHEAD_BYTES });
  for (const field of cut) truncated.add(field);
  return { toolCall: call };
}

function eventFields(
  reading: SessionReading,
  options: CheckViewOptions,
  view: Omit<CheckAnswer, 'nextCursor'>,
  truncated: Set<string>,
): Fields<'nextCursor'> & Partial<Fields<'events' | 'cursorResetTo'>> {
  const { log } = reading;
  // A caller that wants no events still learns where the next ones start.
  if (!options.includeEvents) return { nextCursor: log.nextId };
  const { events, resetTo, hasMore } = log.from(Math.min(options.cursor ?? 0, log.nextId));
  if (hasMore) truncated.add('events');
  const room = options.maxBytes - OVERHEAD_BYTES - byteLength(view);
  const toolNames = new ToolNames(log, events[0]?.id ?? log.nextId);
  const page = eventPage(events, eventViewer(reading, toolNames, options, view), options, room, truncated);
  const nextCursor = page.stoppedBefore ?? log.nextId;
  log.markDelivered(nextCursor - 1);
  return {
    events: page.events,
    nextCursor,
    ...(resetTo !== undefined && options.cursor !== undefined && { cursorResetTo: resetTo }),
  };
}

type EventViewer = (event: SessionEvent) => EventView | undefined;

function eventViewer(
  reading: SessionReading,
  toolNames: ToolNames,
  { mode, includeUsage, includeModelUsage }: CheckViewOptions,
  { actions, result }: Omit<CheckAnswer, 'nextCursor'>,
): EventViewer {
  if (mode === 'minimal') return (event) => minimalEvent(event, toolNames);
  const shows = {
    actions: actions !== undefined,
    result: result !== undefined,
    usage: includeUsage,
    modelUsage: includeModelUsage,
  };
  return (event) => fullEvent(event, { reading, toolNames, shows });
}

interface EventPage {
  events: EventView[];
  /** The first event that did not fit. */
  stoppedBefore: number | undefined;
}

function eventPage(
  all: readonly SessionEvent[],
  viewOf: EventViewer,
  options: CheckViewOptions,
  room: number,
  truncated: Set<string>,
): EventPage {
  const events: EventView[] = [];
  let used = 0;
  for (const event of all) {
    if (!isWanted(event, options)) continue;
    let view = viewOf(event);
    if (!view) continue;
    if (events.length >= options.maxEvents) return stop(events, event, truncated);
    let size = byteLength(view);
    if (used + size > room) {
      if (events.length > 0) return stop(events, event, truncated);
      // One event must get through, however little room there is, or the cursor would never advance.
      view = shortened(view, room, size);
      truncated.add('events');
      size = byteLength(view);
    }
    used += size;
    events.push(view);
  }
  return { events, stoppedBefore: undefined };
}

function shortened(view: EventView, room: number, size: number): EventView {
  const longest = Math.max(MIN_EVENT_TEXT, Math.floor(room / 4));
  const short = { ...view, data: shortenTexts(view.data, longest, `event ${String(view.id)}`).value };
  return byteLength(short) > Math.max(room, 2_000) ? { ...view, data: { shortened: true, bytes: size } } : short;
}

function stop(events: EventView[], next: SessionEvent, truncated: Set<string>): EventPage {
  truncated.add('events');
  return { events, stoppedBefore: next.id };
}

function isWanted(event: SessionEvent, options: CheckViewOptions): boolean {
  const { type } = event;
  if (type === 'progress') return options.includeProgressEvents;
  if (type === 'result') return options.includeTerminalEvents;
  // An error that did not end the turn, such as a rejected login that is retried, is always shown.
  if (type === 'error') return options.includeTerminalEvents || event.body.kind !== 'error';
  return true;
}

import { setTimeout as pause } from 'node:timers/promises';
import { oneLine } from '../../engine/conversation/tool-summary.ts';
import { quote } from '../../config/bad-input.ts';
import { DomainError } from '../../errors/errors.ts';
import { barred, visibleLine, visibleText } from '../../mcp/forms/form.ts';
import type { ApiSession, ApiSessionDetail, SessionsPage } from '../../schema/api.ts';
import type { ApiEvent, EventsPage, StreamMessages } from '../../schema/api-events.ts';
import { STATES_AT_REST } from '../../schema/enums.ts';
import { counted, localTime } from '../../text/columns.ts';
import { type Paint, Screen } from '../terminal/terminal.ts';
import { putToPerson } from './answering.ts';
import { shortAge, shortIds, theOneWith, type ClientContext } from './client.ts';
import { ApiFailure, HubUnreachable } from './hub-api.ts';
import { openRequests } from './inbox.ts';
import { eventLines, indented, UnfinishedText } from './show-events.ts';
import { heading } from './show-request.ts';

const PAGE = 200;
/** As many as fit on a screen or two. */
const SHOWN = 30;
const EVENTS_PAGE = 1000;
const RECONNECT_EVERY_MS = 500;

/** `sessions`: most recently active first. */
export async function listSessions(client: ClientContext, { all }: { all: boolean }): Promise<number> {
  const { api, terminal, json } = client;
  const sessions: ApiSession[] = [];
  let after: string | undefined;
  do {
    const query = all || json ? { limit: PAGE } : { limit: SHOWN, archived: 'false' };
    const page = await api.get<SessionsPage>('/api/v1/sessions', { ...query, after });
    sessions.push(...page.sessions);
    after = page.next;
  } while (after !== undefined && (all || json));
  if (json) client.print(sessions);
  const short = shortIds(sessions.map(({ sessionId }) => sessionId));
  for (const session of sessions) client.say(sessionLine(session, short(session.sessionId), client));
  if (sessions.length === 0) client.say('There are no sessions.');
  if (after !== undefined) client.say(terminal.paint.dim('There are more: claude-code-mcp sessions --all'));
  return 0;
}

function sessionLine(session: ApiSession, id: string, client: ClientContext): string {
  const { paint, columns, isLive } = client.terminal;
  const age = `${shortAge(client.now() - Date.parse(session.lastActiveAt))} ago`;
  const status = session.status.replaceAll('_', ' ');
  const head = `${id}  ${status.padEnd(18)} ${age.padStart(10)}  `;
  const title = oneLine(session.title ?? session.activity ?? '', 60);
  const rest = [title, session.cwd].filter((part) => part !== '').join(' · ');
  const room = isLive ? Math.max(20, columns - head.length) : Number.POSITIVE_INFINITY;
  const shown = oneLine(rest, Math.min(room, 2_000));
  return `${paint.bold(id)}  ${statusColour(session, paint)(status.padEnd(18))} ${age.padStart(10)}  ${shown}`;
}

function statusColour({ status }: Pick<ApiSession, 'status'>, paint: Paint): (text: string) => string {
  switch (status) {
    case 'waiting_permission':
      return paint.yellow;
    case 'running':
      return paint.cyan;
    case 'error':
      return paint.red;
    default:
      return paint.dim;
  }
}

/** `show`: one session, what it waits for, and its last answer. */
export async function showSession(client: ClientContext, id: string): Promise<number> {
  const session = await findSession(client, id);
  if (client.json) client.print(session);
  else client.say(detailLines(session, client).join('\n'));
  return 0;
}

function detailLines(session: ApiSessionDetail, { terminal: { paint } }: ClientContext): string[] {
  const { workspace, result, requests, queued, needs } = session;
  // Before the first turn has ended nothing is known yet.
  const isPending = session.costPending === true && session.totalTurns === 0;
  const cost = `$${session.totalCostUsd.toFixed(4)}${session.costUnknown || session.costPending ? ' or more' : ''}`;
  const facts: [name: string, value: string | undefined][] = [
    ['session', session.sessionId],
    ['title', session.title],
    ['status', [session.status.replaceAll('_', ' '), session.activity].filter(Boolean).join(': ')],
    ['directory', session.cwd],
    ['worktree', workspace?.branch && `${workspace.path ?? ''} (branch ${workspace.branch})`],
    ['owner', session.owner.name],
    ['model', [session.model, session.permissionMode && `mode ${session.permissionMode}`].filter(Boolean).join(', ')],
    ['so far', isPending ? 'not known yet' : `${counted(session.totalTurns, 'turn')}, ${cost}`],
    ['started', localTime(Date.parse(session.createdAt))],
    ['last active', localTime(Date.parse(session.lastActiveAt))],
    ['needs', needs.join(', ')],
    ['cancelled', session.cancelledReason],
  ];
  return [
    ...facts.flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [`${paint.dim(name.padEnd(12))}${oneLine(value, 1_000)}`],
    ),
    ...requests.map(
      (request) =>
        `${paint.yellow('waits for')}   ${waitsFor(request)}  (claude-code-mcp allow ${request.requestId.slice(0, 8)})`,
    ),
    ...queued.flatMap(({ text }) => indented(paint.dim('queued     '), text)),
    ...(result
      ? [
          '',
          ...attentionOf(result).map((line) => `${paint.yellow('!')} ${visibleLine(line)}`),
          paint.dim(result.isError ? 'failed:' : 'answer:'),
          barred(visibleText(result.result.trimEnd())),
        ]
      : []),
  ];
}

/** The summary of a permission names its tool. */
function waitsFor(request: ApiSessionDetail['requests'][number]): string {
  const summary = oneLine(request.summary, 200);
  return request.type === 'permission' ? summary : `${heading(request)}: ${summary}`;
}

/** What whoever reads the answer should know first. */
function attentionOf(result: object): string[] {
  const { attention } = result as { attention?: unknown };
  return Array.isArray(attention) ? attention.filter((line) => typeof line === 'string') : [];
}

/** `follow`: what a session does, as it does it. Survives a restart of the hub. */
export async function followSession(
  client: ClientContext,
  id: string,
  { untilRest }: { untilRest: boolean },
): Promise<number> {
  const session = await findSession(client, id);
  const following = new Following(session, client, untilRest);
  for (let told = false; ;) {
    try {
      return await following.run();
    } catch (error) {
      if (client.signal.aborted) return INTERRUPTED;
      if (!(error instanceof HubUnreachable)) throw error;
      if (!told) client.terminal.writeError('The hub went away; waiting for it to come back.\n');
      told = true;
      await pause(RECONNECT_EVERY_MS, undefined, { signal: client.signal }).catch(() => undefined);
    }
  }
}

const INTERRUPTED = 130;

class Following {
  readonly #sessionId: string;
  readonly #client: ClientContext;
  readonly #untilRest: boolean;
  readonly #screen: Screen;
  readonly #unfinished: UnfinishedText;
  /** Requests that were put to the person here. */
  readonly #asked = new Set<string>();
  /** The last event that was shown; undefined before the first look. */
  #shown: number | undefined;

  constructor({ sessionId }: ApiSession, client: ClientContext, untilRest: boolean) {
    this.#sessionId = sessionId;
    this.#client = client;
    this.#untilRest = untilRest;
    this.#screen = new Screen(client.terminal);
    this.#unfinished = new UnfinishedText(client.terminal.paint);
  }

  /** Until the session has ended or the person has had enough. */
  async run(): Promise<number> {
    const { api, signal } = this.#client;
    const stop = new AbortController();
    const query = new URLSearchParams({ session: this.#sessionId }).toString();
    try {
      const both = AbortSignal.any([signal, stop.signal]);
      for await (const { name, data } of api.stream(`/api/v1/events?${query}`, both)) {
        if (name === 'live' || name === 'reset') {
          await this.#catchUp();
          if (!(await this.#ask())) return 0;
          const code = await this.#endsWith(await this.#read());
          if (code !== undefined) return code;
        } else if (name === 'event') this.#show(data);
        else if (name === 'writing') this.#write(data);
        else if (name === 'session') {
          const code = await this.#endsWith(data);
          if (code !== undefined) return code;
        } else if (name === 'request' && data.status === 'open' && !(await this.#ask())) return 0;
        else if (name === 'removed') return 0;
        if (signal.aborted) return INTERRUPTED;
      }
    } finally {
      stop.abort();
      this.#screen.now('');
    }
    if (signal.aborted) return INTERRUPTED;
    throw new HubUnreachable('the connection was closed');
  }

  async #read(): Promise<ApiSession> {
    return this.#client.api.get<ApiSession>(`/api/v1/sessions/${this.#sessionId}`);
  }

  /** What happened before the stream began: at first from the last message on, later what was missed. */
  async #catchUp(): Promise<void> {
    const path = `/api/v1/sessions/${this.#sessionId}/events`;
    let events: ApiEvent[] = [];
    for (let after = this.#shown ?? 0; ;) {
      const page = await this.#client.api.get<EventsPage>(path, { after, limit: EVENTS_PAGE });
      events = [...events, ...page.events];
      if (this.#shown === undefined) events = events.slice(Math.max(0, lastPrompt(events)));
      after = page.events.at(-1)?.id ?? page.lastId;
      if (after >= page.lastId) break;
    }
    for (const event of events) this.#show(event);
    this.#shown ??= 0;
  }

  #show(event: ApiEvent): void {
    if (event.id <= (this.#shown ?? 0)) return;
    this.#shown = event.id;
    const { json, terminal } = this.#client;
    if (json) terminal.write(`${JSON.stringify(event)}\n`);
    else for (const line of this.#unfinished.rest(event, eventLines(event, terminal.paint))) this.#screen.line(line);
  }

  /** At a terminal, text is shown as it is written; elsewhere, when it is complete. */
  #write(writing: StreamMessages['writing']): void {
    const { json, terminal } = this.#client;
    if (json || !terminal.isLive) return;
    for (const line of this.#unfinished.write(writing)) this.#screen.line(line);
    const line = this.#unfinished.lastLine(Math.max(10, terminal.columns - 6));
    if (line !== '') this.#screen.now(line);
  }

  /** The exit code, if there is nothing more to follow. */
  async #endsWith({ state, activity, status }: ApiSession): Promise<number | undefined> {
    if (state === 'cancelled') return 0;
    const isResting = (STATES_AT_REST as readonly string[]).includes(state);
    // The events that led there may still be on their way.
    if (isResting && this.#untilRest) {
      await this.#catchUp();
      return status === 'error' ? 1 : 0;
    }
    this.#screen.now(isResting ? `${status}; waiting for the next message` : (activity ?? status));
    return undefined;
  }

  /** At a terminal, what the session asks is answered where it is seen. False if the person has had enough. */
  async #ask(): Promise<boolean> {
    const client = this.#client;
    if (client.json || !client.terminal.canAsk) return true;
    const open = await openRequests(client, this.#sessionId);
    for (const request of open) {
      if (this.#asked.has(request.requestId) || !request.mayAnswer) continue;
      this.#asked.add(request.requestId);
      this.#screen.now('');
      const { kind } = await putToPerson(request, request.requestId.slice(0, 8), client);
      if (kind === 'quit') return false;
    }
    return true;
  }
}

function lastPrompt(events: readonly ApiEvent[]): number {
  return events.findLastIndex(({ data }) => data.kind === 'prompt');
}

/** By the beginning of its id. */
export async function findSession(client: ClientContext, id: string): Promise<ApiSessionDetail> {
  const get = (sessionId: string): Promise<ApiSessionDetail> =>
    client.api.get<ApiSessionDetail>(`/api/v1/sessions/${encodeURIComponent(sessionId)}`);
  const page = await client.api.get<SessionsPage>('/api/v1/sessions', { search: id.slice(0, 200), limit: PAGE });
  const found = page.sessions.filter(({ sessionId }) => sessionId.startsWith(id));
  if (found.length > 0) return get(theOneWith(id, found, ({ sessionId }) => sessionId).sessionId);
  try {
    return await get(id);
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    throw new DomainError(
      'SESSION_NOT_FOUND',
      `No session has an id that begins with ${quote(id.slice(0, 100))}; "claude-code-mcp sessions --all" lists them.`,
    );
  }
}

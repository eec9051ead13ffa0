import { setTimeout as pause } from 'node:timers/promises';
import type { ApiRequest, RequestsPage } from '../../schema/api.ts';
import { DomainError } from '../../errors/errors.ts';
import { quote, SettingsError } from '../../config/bad-input.ts';
import { rowsOf, Screen } from '../terminal/terminal.ts';
import { askToAllow, putToPerson, send, type Asked } from './answering.ts';
import { ApiFailure, HubUnreachable } from './hub-api.ts';
import { NEEDS_PERSON, shortIds, theOneWith, type ClientContext } from './client.ts';
import { outcomeLine, requestDigest, requestLines } from './show-request.ts';

const PAGE = 200;
const RECONNECT_EVERY_MS = 500;

/** `inbox`: what waits, oldest first. At a terminal each is put to the person, elsewhere they are listed. */
export async function showInbox(client: ClientContext, { watch }: { watch: boolean }): Promise<number> {
  const { terminal } = client;
  if (watch && (client.json || !terminal.canAsk))
    throw new SettingsError(
      'inbox --watch puts requests to a person: it takes an interactive terminal, and no --json. Programs follow GET /api/v1/events.',
    );
  if (client.json) {
    const requests = await openRequests(client);
    client.print(requests.map((request) => ({ ...request, digest: requestDigest(request) })));
    return 0;
  }
  return terminal.canAsk ? workThrough(client, watch) : list(client);
}

async function list(client: ClientContext): Promise<number> {
  const requests = await openRequests(client);
  const short = shortIds(requests.map(({ requestId }) => requestId));
  const { paint } = client.terminal;
  for (const request of requests)
    client.say([...requestLines(request, { id: short(request.requestId), paint, now: client.now() }), ''].join('\n'));
  if (requests.length === 0) client.say('Nothing is waiting.');
  return 0;
}

async function workThrough(client: ClientContext, watch: boolean): Promise<number> {
  const seen = new Set<string>();
  for (;;) {
    const open = await openRequests(client).catch((error: unknown) => {
      if (!watch || !(error instanceof HubUnreachable)) throw error;
      return [];
    });
    const short = shortIds(open.map(({ requestId }) => requestId));
    const next = open.find(({ requestId }) => !seen.has(requestId));
    if (!next) {
      const skipped = open.length;
      if (!watch) {
        client.say(skipped === 0 ? 'Nothing is waiting.' : `${String(skipped)} still waiting.`);
        return 0;
      }
      if (!(await untilAsked(client, seen))) return client.signal.aborted ? 130 : 0;
      continue;
    }
    seen.add(next.requestId);
    if (!next.mayAnswer) {
      const { paint } = client.terminal;
      const lines = requestLines(next, { id: short(next.requestId), paint, now: client.now() });
      client.say(lines.flatMap((line) => rowsOf(line, client.terminal.columns)).join('\n'));
      client.say('Your role may not answer this.\n');
      continue;
    }
    const { kind } = await putToPerson(next, short(next.requestId), client);
    if (kind === 'quit') return client.signal.aborted ? 130 : 0;
    client.say('');
  }
}

/** Resolves when it is time to look again; false when the person has had enough. */
async function untilAsked(client: ClientContext, seen: ReadonlySet<string>): Promise<boolean> {
  const screen = new Screen(client.terminal);
  screen.now('Nothing is waiting. Requests are shown as they come; Ctrl-C ends.');
  const stop = new AbortController();
  const signal = AbortSignal.any([client.signal, stop.signal]);
  try {
    for await (const { name, data } of client.api.stream('/api/v1/events?events=false', signal)) {
      if (name === 'request' && data.status === 'open' && !seen.has(data.requestId)) return true;
      // What came between the last look and the stream is not in the stream.
      if (name === 'live' && (await openRequests(client)).some(({ requestId }) => !seen.has(requestId))) return true;
    }
  } catch (error) {
    if (!(error instanceof HubUnreachable) || client.signal.aborted) throw error;
    // Restarted, perhaps; what waits is in its store.
    screen.now('The hub went away; waiting for it to come back.');
    await pause(RECONNECT_EVERY_MS, undefined, { signal: client.signal }).catch(() => undefined);
  } finally {
    stop.abort();
    screen.now('');
  }
  return !client.signal.aborted;
}

export interface AllowOptions {
  readonly digest: string | undefined;
  readonly always: boolean;
  /** What `409 stale` said. */
  readonly confirm: string | undefined;
}

/** `allow`: asks at a terminal; unattended it takes a token and the digest of what is allowed. */
export async function allowRequest(client: ClientContext, id: string, options: AllowOptions): Promise<number> {
  const { digest, always, confirm } = options;
  const { terminal, hasToken } = client;
  const isUnattended = !terminal.canAsk || (hasToken && digest !== undefined);
  if (isUnattended && !hasToken) throw new DomainError('PERMISSION_DENIED', NEEDS_PERSON);
  if (isUnattended && digest === undefined)
    throw new SettingsError('Not an interactive terminal: allow takes --digest, with the digest from "inbox --json".');
  const request = await findRequest(client, id);
  if (isSettled(client, request)) return 1;
  checkMayAnswer(request, client);
  const actual = requestDigest(request);
  if (digest !== undefined && digest !== actual)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `The digest of this request is ${actual}, not the one given: it asks for something else. Nothing was allowed.`,
    );
  const more = always ? { always } : {};
  if (isUnattended && request.type === 'user_question')
    throw new DomainError(
      'INVALID_ARGUMENT',
      'A question needs an answer; answer it in a terminal or on the dashboard.',
    );
  const asked = isUnattended
    ? await send(request, { decision: 'allow', ...more, ...(confirm !== undefined && { confirm }) }, client, false)
    : await askToAllow(request, request.requestId.slice(0, 8), client, more);
  return ended(asked, client);
}

/** `deny`: needs no confirmation, since nothing happens by it. */
export async function denyRequest(client: ClientContext, id: string, message: string | undefined): Promise<number> {
  const { terminal, hasToken } = client;
  if (!terminal.canAsk && !hasToken) throw new DomainError('PERMISSION_DENIED', NEEDS_PERSON);
  const request = await findRequest(client, id);
  if (isSettled(client, request)) return 1;
  checkMayAnswer(request, client);
  if (!client.json) {
    const lines = requestLines(request, {
      id: request.requestId.slice(0, 8),
      paint: terminal.paint,
      now: client.now(),
    });
    const rows = terminal.canAsk ? lines.flatMap((line) => rowsOf(line, terminal.columns)) : lines;
    client.say(rows.join('\n'));
  }
  return ended(await send(request, { decision: 'deny', ...(message !== undefined && { message }) }, client), client);
}

function ended(asked: Asked, client: ClientContext): number {
  switch (asked.kind) {
    case 'settled':
      if (client.json) client.print(asked.request);
      return 0;
    case 'too late':
      return 1;
    case 'skipped':
    case 'quit':
      client.say('Not answered; it is still waiting.');
      return client.signal.aborted ? 130 : 1;
  }
}

function isSettled({ terminal }: ClientContext, { outcome }: ApiRequest): boolean {
  if (!outcome) return false;
  terminal.writeError(`Already settled: ${outcomeLine(outcome, terminal.paint)}\n`);
  return true;
}

function checkMayAnswer({ mayAnswer }: ApiRequest, { hasToken }: ClientContext): void {
  if (mayAnswer) return;
  throw new DomainError(
    'PERMISSION_DENIED',
    hasToken ? 'The role of this token may not answer this request.' : NEEDS_PERSON,
  );
}

/** All of them, oldest first. */
export async function openRequests({ api }: ClientContext, session?: string): Promise<ApiRequest[]> {
  const all: ApiRequest[] = [];
  let after: string | undefined;
  do {
    const page = await api.get<RequestsPage>('/api/v1/requests', { limit: PAGE, after, session });
    all.push(...page.requests);
    after = page.next;
  } while (after !== undefined);
  return all;
}

/** An open one by the beginning of its id, or any by its whole id. */
async function findRequest(client: ClientContext, id: string): Promise<ApiRequest> {
  const open = (await openRequests(client)).filter(({ requestId }) => requestId.startsWith(id));
  if (open.length > 0) return theOneWith(id, open, ({ requestId }) => requestId);
  try {
    return await client.api.get<ApiRequest>(`/api/v1/requests/${encodeURIComponent(id)}`);
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    throw new DomainError(
      'PERMISSION_REQUEST_NOT_FOUND',
      `No open request has an id that begins with ${quote(id.slice(0, 100))}; "claude-code-mcp inbox" shows what waits.`,
    );
  }
}

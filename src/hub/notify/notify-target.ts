import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { messageOf } from '../../errors/errors.ts';
import { STATES_AT_REST } from '../../schema/enums.ts';
import type { FeedEntry, StoredSession } from '../../schema/store.ts';
import { COMPACT_STATUS } from '../../views/status.ts';

/** How long a receiver may take. */
const URL_PATIENCE_MS = 10_000;
const COMMAND_PATIENCE_MS = 60_000;
const MAX_REASON_LENGTH = 200;

export type Delivery = { readonly ok: true } | { readonly ok: false; readonly why: string };

/** Delivers one notification, or says why not. Never throws. */
export type NotifyTarget = (note: string, signal: AbortSignal) => Promise<Delivery>;

/** A URL to POST to, or a command to run. */
export function notifyTarget(target: string, secret: string | undefined): NotifyTarget {
  return /^https?:/i.test(target) ? urlTarget(target, secret) : commandTarget(target);
}

/** As GitHub and many others sign: over the whole body, which has an id and a time of its own. */
function signatureOf(note: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(note).digest('hex')}`;
}

function urlTarget(url: string, secret: string | undefined): NotifyTarget {
  return async (note, signal) => {
    try {
      const response = await fetch(url, {
        method: 'POST',
        // Anyone who can redirect would get what was meant for the receiver.
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'claude-code-mcp',
          ...(secret !== undefined && { 'x-hub-signature-256': signatureOf(note, secret) }),
        },
        body: note,
        signal: AbortSignal.any([signal, AbortSignal.timeout(URL_PATIENCE_MS)]),
      });
      await response.body?.cancel();
      return response.ok ? { ok: true } : { ok: false, why: `it answered ${response.status}` };
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      return { ok: false, why: messageOf(cause).slice(0, MAX_REASON_LENGTH) };
    }
  };
}

function commandTarget(command: string): NotifyTarget {
  return (note, signal) =>
    new Promise((resolve) => {
      const ended = AbortSignal.any([signal, AbortSignal.timeout(COMMAND_PATIENCE_MS)]);
      if (ended.aborted) return resolve({ ok: false, why: 'the hub is stopping' });
      // Its own process group, so that what it starts ends with it.
      const isGroup = process.platform !== 'win32';
      const child = spawn(command, { shell: true, stdio: ['pipe', 'ignore', 'ignore'], detached: isGroup });
      const kill = (): void => {
        try {
          if (isGroup && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
          else child.kill('SIGKILL');
        } catch {
          // The process has ended.
        }
      };
      const settle = (delivery: Delivery): void => {
        ended.removeEventListener('abort', kill);
        resolve(delivery);
      };
      ended.addEventListener('abort', kill);
      child.once('error', (error) => settle({ ok: false, why: messageOf(error).slice(0, MAX_REASON_LENGTH) }));
      child.once('exit', (code, killedBy) =>
        settle(
          code === 0 ? { ok: true } : { ok: false, why: `it exited with ${killedBy ?? `exit code ${code ?? '?'}`}` },
        ),
      );
      // A command that does not read its input may have exited before it is written.
      child.stdin.on('error', () => undefined);
      child.stdin.end(note);
    });
}

/** Contents of a notification: where to look, never what was said or done. */
export const note = z.object({
  /** The same however often it is sent. */
  id: z.string(),
  type: z.enum(['request.opened', 'session.rested']),
  /** When it happened. */
  time: z.iso.datetime(),
  session: z.object({ id: z.string(), status: z.string() }),
  request: z.object({ id: z.string(), kind: z.string(), toolName: z.string() }).optional(),
  /** Opens it in the dashboard. */
  link: z.string(),
});
export type Note = z.infer<typeof note>;

const MAX_RESTS = 2_000;

/**
 * Idle sessions that have been reported, each with what distinguishes this rest from the next. The oldest are
 * forgotten.
 */
export type KnownRests = Map<string, string>;

/** What a change in the store gives reason to report, if anything. */
export function noteOf(
  entry: FeedEntry,
  session: StoredSession,
  rests: KnownRests,
  { url, now }: { readonly url: string; readonly now: number },
): Note | undefined {
  const status = COMPACT_STATUS[session.state.tag];
  if (entry.kind === 'request') {
    const { id, kind, ask, createdAt, outcome } = entry.row;
    if (outcome) return undefined;
    const toolName = typeof ask['toolName'] === 'string' ? ask['toolName'] : '';
    return {
      id: `request.opened ${id}`,
      type: 'request.opened',
      time: new Date(createdAt).toISOString(),
      session: { id: session.id, status },
      request: { id, kind, toolName },
      link: `${url}/#/sessions/${encodeURIComponent(session.id)}`,
    };
  }
  if (entry.kind !== 'session') return undefined;
  const rest = restOf(session);
  const isReported = rest !== undefined && rests.get(session.id) === rest;
  rests.delete(session.id);
  if (rest === undefined) return undefined;
  rests.set(session.id, rest);
  if (rests.size > MAX_RESTS) rests.delete(rests.keys().next().value ?? '');
  if (isReported) return undefined;
  return {
    id: `session.rested ${session.id} ${rest} ${session.lastActiveAt}`,
    type: 'session.rested',
    time: new Date(now).toISOString(),
    session: { id: session.id, status },
    link: `${url}/#/sessions/${encodeURIComponent(session.id)}`,
  };
}

/** A row may be stored again while the session rests, and a turn may start and end between two looks. */
function restOf({ state: { tag }, totals }: StoredSession): string | undefined {
  if (!(STATES_AT_REST as readonly string[]).includes(tag)) return undefined;
  return [tag, totals['turns'], totals['costUsd']].join('/');
}

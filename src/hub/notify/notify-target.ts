import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { messageOf } from '../../errors/errors.ts';

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
export function signatureOf(note: string, secret: string): string {
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
          // It has gone.
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

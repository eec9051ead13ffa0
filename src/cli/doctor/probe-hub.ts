import type { X509Certificate } from 'node:crypto';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { get as getOverTls } from 'node:https';
import type { TLSSocket } from 'node:tls';

const ANSWER_WITHIN_MS = 3_000;

export interface ProbedHub {
  readonly status: number;
  /** What time it is there. */
  readonly date: number;
  /** What it shows its clients; undefined without TLS. */
  readonly certificate: X509Certificate | undefined;
}

/**
 * Checks a hub's health. Its certificate is inspected, not relied on: it names the public host, which this machine may
 * know by another name, and nothing secret is sent.
 */
export function probeHub(url: string): Promise<ProbedHub> {
  return new Promise((resolve, reject) => {
    const target = new URL('/healthz', url);
    const isTls = target.protocol === 'https:';
    const answered = (response: IncomingMessage): void => {
      response.resume();
      resolve({
        status: response.statusCode ?? 0,
        date: Date.parse(response.headers.date ?? ''),
        certificate: isTls ? (response.socket as TLSSocket).getPeerX509Certificate() : undefined,
      });
    };
    const options = { agent: false, timeout: ANSWER_WITHIN_MS } as const;
    const request = isTls
      ? getOverTls(target, { ...options, rejectUnauthorized: false }, answered)
      : getPlain(target, options, answered);
    request.once('timeout', () => request.destroy(new Error(`no answer within ${String(ANSWER_WITHIN_MS / 1000)} s`)));
    request.once('error', reject);
  });
}

/** A push service on loopback, and browsers that subscribe to it: what arrives is decrypted as a browser would. */

import { createECDH, createPublicKey, randomBytes, type ECDH } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type ServerOptions } from 'node:https';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { decrypt } from 'http_ece';
import { jwtVerify } from 'jose';
import type { PushPayload } from '../../src/schema/api-admin.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));
/** For `NODE_EXTRA_CA_CERTS`. */
export const LOOPBACK_CERTIFICATE = fixture('loopback-cert.pem');
const TLS: ServerOptions = {
  cert: readFileSync(LOOPBACK_CERTIFICATE),
  key: readFileSync(fixture('loopback-key.pem')),
};

export interface PushArrival {
  readonly browser: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly payload: PushPayload;
}

export interface TestBrowser {
  readonly name: string;
  /** What `PushSubscription.toJSON` returns. */
  readonly subscription: {
    readonly endpoint: string;
    readonly keys: { readonly p256dh: string; readonly auth: string };
  };
  /** What it was told, in order. */
  readonly arrivals: PushArrival[];
  /** `open r1`, `settled r1`, `test`. */
  told(): string[];
}

type Answer = (response: ServerResponse, arrival: PushArrival) => void;

export interface PushService {
  /** For `--push-hosts`. */
  readonly host: string;
  readonly ca: string;
  readonly arrivals: readonly PushArrival[];
  browser(name: string): TestBrowser;
  respondWith(answer: Answer): void;
  close(): Promise<void>;
}

const accept: Answer = (response) => response.writeHead(201).end();

export async function openPushService(): Promise<PushService> {
  const arrivals: PushArrival[] = [];
  const browsers = new Map<string, { keys: ECDH; auth: string; arrivals: PushArrival[] }>();
  let answer = accept;
  const server = createServer(TLS, (request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const name = (request.url ?? '').slice(1);
      const browser = browsers.get(name);
      if (!browser) return void response.writeHead(404).end();
      const body = Buffer.concat(pieces);
      const { keys, auth } = browser;
      const text = decrypt(body, { version: 'aes128gcm', privateKey: keys, authSecret: auth }).toString();
      const payload = JSON.parse(text) as PushPayload;
      const arrival = { browser: name, headers: request.headers, body, payload };
      arrivals.push(arrival);
      browser.arrivals.push(arrival);
      answer(response, arrival);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `localhost:${(server.address() as AddressInfo).port}`;
  return {
    host,
    ca: readFileSync(LOOPBACK_CERTIFICATE, 'utf8'),
    arrivals,
    browser(name) {
      const keys = createECDH('prime256v1');
      const p256dh = keys.generateKeys('base64url');
      const auth = randomBytes(16).toString('base64url');
      const own: PushArrival[] = [];
      browsers.set(name, { keys, auth, arrivals: own });
      return {
        name,
        subscription: { endpoint: `https://${host}/${name}`, keys: { p256dh, auth } },
        arrivals: own,
        told: () =>
          own.map(({ payload }) => ('requestId' in payload ? `${payload.state} ${payload.requestId}` : payload.state)),
      };
    },
    respondWith: (given) => (answer = given),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What the hub says about itself to a push service, if its signature is valid. */
export async function senderOf({ headers }: PushArrival): Promise<{ publicKey: string; claims: object }> {
  const [, token = '', publicKey = ''] = /^vapid t=([^,]+), k=(\S+)$/.exec(headers.authorization ?? '') ?? [];
  const point = Buffer.from(publicKey, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
  const key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y } as never, format: 'jwk' });
  const { payload } = await jwtVerify(token, key, { algorithms: ['ES256'] });
  return { publicKey, claims: payload };
}

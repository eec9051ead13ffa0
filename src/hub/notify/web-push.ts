/**
 * Web Push: one encrypted message to one browser, by way of its vendor's push service (RFC 8030, 8188, 8291, 8292).
 * Node's own cryptography does all of it.
 */

import {
  createCipheriv,
  createECDH,
  createHash,
  createPrivateKey,
  ECDH,
  hkdfSync,
  randomBytes,
  sign,
  type KeyObject,
} from 'node:crypto';
import dns from 'node:dns';
import https from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { DomainError, messageOf } from '../../errors/errors.ts';

/** The hub's key pair, by which push services recognise it; as base64url. */
export interface PushKeys {
  readonly publicKey: string;
  readonly privateKey: string;
}

/** Where a browser's messages go, and the keys that only this browser can decrypt with; as base64url. */
export interface PushTarget {
  readonly endpoint: string;
  readonly p256dh: string;
  readonly auth: string;
}

export interface PushMessage {
  readonly payload: string;
  /** A message that has not been delivered yet is replaced by the next one with the same topic. */
  readonly topic?: string;
  readonly urgency: 'normal' | 'high';
  readonly ttlSeconds: number;
}

export type PushDelivery =
  | { readonly outcome: 'delivered' }
  /** The browser has unsubscribed. */
  | { readonly outcome: 'gone' }
  /** It makes no sense to send this message again. */
  | { readonly outcome: 'refused'; readonly why: string }
  | { readonly outcome: 'failed'; readonly why: string; readonly retryAfterMs?: number };

const CURVE = 'prime256v1';
const PATIENCE_MS = 10_000;
const TOKEN_LIFETIME_S = 12 * 3600;
const MAX_RETRY_AFTER_MS = 3_600_000;
const MAX_REASON_LENGTH = 200;
const MAX_ENDPOINT_LENGTH = 2_000;
/** Push services accept 4,096 bytes. */
const RECORD_BYTES = 4096;
const POINT_BYTES = 65;
const AUTH_BYTES = 16;
/** Every payload is padded to this, so that its length says nothing about its content. */
const PADDED_BYTES = 512;

export function newPushKeys(): PushKeys {
  const pair = createECDH(CURVE);
  pair.generateKeys();
  const padded = Buffer.alloc(32);
  const secret = pair.getPrivateKey();
  secret.copy(padded, 32 - secret.length);
  return { publicKey: pair.getPublicKey('base64url'), privateKey: padded.toString('base64url') };
}

// ── where messages may go ──────────────────────────────────────────────────────────────────────────────────────────────

/** The push services of Chrome and Edge, Firefox, older Edge, and Safari. */
const KNOWN_SERVICES = [
  'fcm.googleapis.com',
  '.push.services.mozilla.com',
  '.notify.windows.com',
  '.push.apple.com',
] as const;

/** Throws INVALID_ARGUMENT unless it is a push service. `hosts`: further ones, each with its port. */
export function checkEndpoint(endpoint: string, hosts: readonly string[]): URL {
  const url = endpoint.length <= MAX_ENDPOINT_LENGTH && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '')
    throw new DomainError('INVALID_ARGUMENT', 'endpoint: the https URL of a push service, as the browser returned it.');
  const isKnown =
    url.port === '' &&
    KNOWN_SERVICES.some((name) => (name.startsWith('.') ? url.hostname.endsWith(name) : url.hostname === name));
  if (!isKnown && !isListed(url, hosts))
    throw new DomainError(
      'INVALID_ARGUMENT',
      `endpoint: ${url.host.slice(0, 100)} is not a push service that this hub knows; its operator can add it with --push-hosts.`,
    );
  return url;
}

function isListed({ hostname, port }: URL, hosts: readonly string[]): boolean {
  return hosts.includes(`${hostname}:${port === '' ? '443' : port}`);
}

/** Throws INVALID_ARGUMENT unless they are a point on the curve and a secret of the right length. */
function checkBrowserKeys({ p256dh, auth }: Pick<PushTarget, 'p256dh' | 'auth'>): void {
  const point = Buffer.from(p256dh, 'base64url');
  try {
    if (point.length !== POINT_BYTES || Buffer.from(auth, 'base64url').length !== AUTH_BYTES) throw new Error('length');
    ECDH.convertKey(point, CURVE);
  } catch {
    throw new DomainError('INVALID_ARGUMENT', 'keys: p256dh and auth, as the browser returned them.');
  }
}

const NOT_PUBLIC = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv4');
// Within the public range of IPv6: documentation, and tunnels that lead to any IPv4 address.
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv6');
const PUBLIC_IPV6 = new BlockList();
PUBLIC_IPV6.addSubnet('2000::', 3, 'ipv6');

export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !NOT_PUBLIC.check(address, 'ipv4');
  return family === 6 && PUBLIC_IPV6.check(address, 'ipv6') && !NOT_PUBLIC.check(address, 'ipv6');
}

/** Checked where the connection is made: a name that is looked up twice can lead to two addresses. */
function publicOnly(resolve: typeof dns.lookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || !first) return callback(error ?? new Error(`${hostname} has no address`), []);
      if (!addresses.every(({ address }) => isPublicAddress(address)))
        return callback(new Error(`${hostname} leads to a private address`), []);
      if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

// ── sending ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface PushSenderOptions {
  readonly keys: PushKeys;
  /** Push services besides the known ones, each with its port. */
  readonly hosts: readonly string[];
  /** Who runs this hub, for the operators of push services: a `mailto:` or `https:` URL. */
  readonly contact: string;
  readonly now: () => number;
  /** For tests: how names become addresses. */
  readonly lookup?: typeof dns.lookup;
  /** For tests: whose certificates are accepted. */
  readonly ca?: string;
}

/** Sends messages to browsers. Never throws. */
export class PushSender {
  readonly #options: PushSenderOptions;
  readonly #key: KeyObject;

  constructor(options: PushSenderOptions) {
    this.#options = options;
    const point = Buffer.from(options.keys.publicKey, 'base64url');
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
    const jwk = { kty: 'EC', crv: 'P-256', x, y, d: options.keys.privateKey };
    this.#key = createPrivateKey({ key: jwk as never, format: 'jwk' });
  }

  get publicKey(): string {
    return this.#options.keys.publicKey;
  }

  /** Throws INVALID_ARGUMENT if nothing could be sent there. */
  check(target: PushTarget): void {
    checkEndpoint(target.endpoint, this.#options.hosts);
    checkBrowserKeys(target);
  }

  async send(target: PushTarget, message: PushMessage, signal: AbortSignal): Promise<PushDelivery> {
    const { hosts, lookup = dns.lookup, ca } = this.#options;
    let url: URL;
    try {
      // The operator's hosts may be others than when the browser subscribed.
      url = checkEndpoint(target.endpoint, hosts);
      const body = encrypted(message.payload, target);
      return await post(url, {
        body,
        headers: {
          authorization: this.#authorization(url),
          'content-encoding': 'aes128gcm',
          'content-type': 'application/octet-stream',
          'content-length': String(body.length),
          ttl: String(message.ttlSeconds),
          urgency: message.urgency,
          ...(message.topic !== undefined && { topic: topicOf(message.topic) }),
        },
        ...(ca !== undefined && { ca }),
        ...(!isListed(url, hosts) && { lookup: publicOnly(lookup) }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]),
      });
    } catch (error) {
      const why = messageOf(error).slice(0, MAX_REASON_LENGTH);
      return error instanceof DomainError ? { outcome: 'refused', why } : { outcome: 'failed', why };
    }
  }

  /** Says who sends it: a token for this push service, signed with the hub's key. */
  #authorization({ origin }: URL): string {
    const { contact, now, keys } = this.#options;
    const claims = { aud: origin, exp: Math.floor(now() / 1000) + TOKEN_LIFETIME_S, sub: contact };
    const signed = [{ typ: 'JWT', alg: 'ES256' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = sign('sha256', Buffer.from(signed), { key: this.#key, dsaEncoding: 'ieee-p1363' });
    return `vapid t=${signed}.${signature.toString('base64url')}, k=${keys.publicKey}`;
  }
}

/** At most 32 characters of base64url, and nobody at the push service needs to know what about. */
function topicOf(topic: string): string {
  return createHash('sha256').update(topic).digest('base64url').slice(0, 32);
}

/** One record that only the browser can read, with the key to it in front. */
export function encrypted(payload: string, { p256dh, auth }: Pick<PushTarget, 'p256dh' | 'auth'>): Buffer {
  const browserKey = Buffer.from(p256dh, 'base64url');
  const ephemeral = createECDH(CURVE);
  const ephemeralKey = ephemeral.generateKeys();
  const shared = ephemeral.computeSecret(browserKey);
  const context = Buffer.concat([Buffer.from('WebPush: info\0'), browserKey, ephemeralKey]);
  const input = hkdf(shared, Buffer.from(auth, 'base64url'), context, 32);
  const salt = randomBytes(16);
  const key = hkdf(input, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
  const nonce = hkdf(input, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
  const content = Buffer.from(payload);
  const padded = Buffer.alloc(Math.max(PADDED_BYTES, content.length + 1));
  content.copy(padded);
  // Marks the end of the content, and that no further record follows.
  padded[content.length] = 2;
  const cipher = createCipheriv('aes-128-gcm', key, nonce);
  const header = Buffer.alloc(21);
  salt.copy(header);
  header.writeUInt32BE(RECORD_BYTES, 16);
  header.writeUInt8(ephemeralKey.length, 20);
  return Buffer.concat([header, ephemeralKey, cipher.update(padded), cipher.final(), cipher.getAuthTag()]);
}

function hkdf(input: Buffer, salt: Buffer, info: Buffer, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', input, salt, info, length));
}

/** Redirects are not followed, and what the service answers besides its status is not read. */
function post(url: URL, { body, ...options }: https.RequestOptions & { readonly body: Buffer }): Promise<PushDelivery> {
  return new Promise((resolve, reject) => {
    const request = https.request(url, { method: 'POST', agent: false, ...options }, (response) => {
      const { statusCode = 0 } = response;
      const retryAfter = response.headers['retry-after'];
      response.destroy();
      resolve(deliveryOf(statusCode, retryAfter));
    });
    request.once('error', reject);
    request.end(body);
  });
}

function deliveryOf(status: number, retryAfter: string | undefined): PushDelivery {
  if (status >= 200 && status < 300) return { outcome: 'delivered' };
  if (status === 404 || status === 410) return { outcome: 'gone' };
  const why = `the push service answered ${status}`;
  const isFinal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  if (isFinal) return { outcome: 'refused', why };
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined;
  const wait = seconds !== undefined && { retryAfterMs: Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) };
  return { outcome: 'failed', why, ...wait };
}

import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { HttpRefusal } from './route.ts';

/** The hub's names, by which it recognises its own pages and clients and rejects DNS rebinding. */
export interface OwnNames {
  /** Whether `Host` is a name of this hub. */
  isOwnHost(host: string): boolean;
  /** The origin that a page served under this `Host` has. */
  originOf(host: string): string;
}

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'];

export interface Listening {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isLoopback: boolean;
  /** PEM, if the hub terminates TLS itself. */
  readonly certificate: string | undefined;
  /** The origin of the reverse proxy in front. */
  readonly publicOrigin: string | undefined;
}

export function ownNames({ host, port, isLoopback, certificate, publicOrigin }: Listening): OwnNames {
  const scheme = certificate === undefined ? 'http' : 'https';
  const direct = new Set<string>();
  const add = (name: string): void => {
    direct.add(`${name}:${String(port)}`);
    if (port === (scheme === 'https' ? 443 : 80)) direct.add(name);
  };
  // A page on another site cannot make a browser send these: they are never its own names.
  if (isLoopback || isUnspecified(host)) LOOPBACK_NAMES.forEach(add);
  if (!isUnspecified(host)) add(host.includes(':') ? `[${host}]` : host.toLowerCase());
  const publicHost = publicOrigin === undefined ? undefined : new URL(publicOrigin).host;
  const named = certificate === undefined ? undefined : new X509Certificate(certificate);
  return {
    isOwnHost(given) {
      const name = given.toLowerCase();
      if (name === publicHost || direct.has(name)) return true;
      return named !== undefined && isNamedBy(named, name, port);
    },
    originOf: (given) =>
      given.toLowerCase() === publicHost && publicOrigin !== undefined
        ? publicOrigin
        : `${scheme}://${given.toLowerCase()}`,
  };
}

function isUnspecified(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** A host in the certificate, with the port that the hub listens on. */
function isNamedBy(certificate: X509Certificate, hostAndPort: string, port: number): boolean {
  const [, name, given] = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(\d{1,5}))?$/.exec(hostAndPort) ?? [];
  if (name === undefined || Number(given ?? 443) !== port) return false;
  const bare = name.replace(/^\[|\]$/g, '');
  return (isIP(bare) === 0 ? certificate.checkHost(bare) : certificate.checkIP(bare)) !== undefined;
}

/** Sent at most once: different programs on the way treat duplicates differently. */
const SINGLE_HEADERS = new Set([
  'authorization',
  'content-length',
  'content-type',
  'cookie',
  'host',
  'mcp-session-id',
  'origin',
  'transfer-encoding',
  'x-claude-code-key',
]);
const PATH = /^(?:\/[\w.~!$&'()*+,;=:@%-]*)+$/;
const MAX_URL_LENGTH = 4096;
const TOKEN_IN_URL = /ccmcp_/i;

export interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
}

/**
 * Refuses what no client of the hub sends: foreign host names, requests from other pages, ambiguous requests that
 * proxies parse differently.
 */
export function checkRequest(request: IncomingMessage, names: OwnNames): Target {
  checkHeaders(request);
  const host = request.headers.host ?? '';
  if (!names.isOwnHost(host)) throw new HttpRefusal(421, 'INVALID_ARGUMENT', 'The hub is not known by this name.');
  const target = targetOf(request.url ?? '');
  checkOrigin(request, names.originOf(host));
  return target;
}

function checkHeaders({ rawHeaders, headers }: IncomingMessage): void {
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase();
    if (SINGLE_HEADERS.has(name) && seen.has(name)) throw badRequest(`There are two ${name} headers.`);
    seen.add(name);
  }
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') throw badRequest('Unknown transfer encoding.');
  if (encoding !== undefined && headers['content-length'] !== undefined)
    throw badRequest('Both a length and a transfer encoding.');
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new HttpRefusal(415, 'INVALID_ARGUMENT', 'The hub does not accept compressed bodies.');
}

/** Not normalised: a path that could mean a different one to some program is not a path of the hub. */
function targetOf(url: string): Target {
  const [, path = '', query] = /^([^?]*)(?:\?(.*))?$/s.exec(url) ?? [];
  if (url.length > MAX_URL_LENGTH || !PATH.test(path)) throw badRequest('Not a path of the hub.');
  if (path.split('/').some((segment) => segment === '.' || segment === '..' || /%(?:2e|2f|5c|00)/i.test(segment)))
    throw badRequest('Not a path of the hub.');
  if (TOKEN_IN_URL.test(url))
    throw badRequest(
      'A token does not belong in a URL, where it ends up in logs: revoke this one, and send the next one as a header.',
    );
  return { path, query: new URLSearchParams(query) };
}

/** A page of another origin, even on another port of the same host, reaches nothing here. */
function checkOrigin({ headers, method }: IncomingMessage, own: string): void {
  const { origin } = headers;
  if (origin !== undefined && origin !== own) throw foreignPage();
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  // Following a link to the dashboard; the page's own requests are then same-origin.
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  if (!isNavigation || method !== 'GET') throw foreignPage();
}

function foreignPage(): HttpRefusal {
  return new HttpRefusal(403, 'PERMISSION_DENIED', 'Pages of another origin may not use the hub.');
}

function badRequest(message: string): HttpRefusal {
  return new HttpRefusal(400, 'INVALID_ARGUMENT', message, { connection: 'close' });
}

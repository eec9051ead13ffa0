import type { Kind, Parsed } from './setting-kinds.ts';

const REJECTED = { problem: undefined } as const;

export interface ListenAddress {
  /** Without brackets, also for IPv6. */
  readonly host: string;
  /** 0 stands for any free port. */
  readonly port: number;
}

const HOST_AND_PORT = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i;

export const listenAddress: Kind<ListenAddress> = {
  accepts: 'a host and a port, such as 127.0.0.1:7433 or [::1]:0',
  placeholder: 'host:port',
  parse(text) {
    const [, bracketed, plain, digits] = HOST_AND_PORT.exec(text.trim()) ?? [];
    const host = bracketed ?? plain;
    const port = Number(digits);
    return host !== undefined && port <= 65_535 ? { value: { host, port } } : REJECTED;
  },
  format: ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${String(port)}`,
};

const HOST_MAYBE_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(?::(\d{1,5}))?$/i;

/** Each with its port, that of https if none is given: `push.example.org:443`. */
export const httpsHosts: Kind<readonly string[]> = {
  accepts: 'comma-separated hosts, such as push.example.org or push.example.org:8443',
  placeholder: 'hosts',
  parse(text) {
    const value = text
      .split(',')
      .map((host) => host.trim().toLowerCase())
      .filter(Boolean)
      .map((host) => {
        const [, name, , port = '443'] = HOST_MAYBE_PORT.exec(host) ?? [];
        return name !== undefined && Number(port) <= 65_535 ? `${name}:${port}` : undefined;
      });
    return value.includes(undefined) ? REJECTED : { value: [...new Set(value.filter((host) => host !== undefined))] };
  },
  format: (value) => value.join(','),
};

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** An origin: a path would be silently ignored. */
export const httpsOrigin: Kind<string> = {
  accepts: 'an https URL without a path, such as https://claude.example.org',
  placeholder: 'url',
  parse(text) {
    const url = parsedUrl(text);
    if (url?.protocol !== 'https:' || url.pathname !== '/' || url.search !== '' || url.hash !== '') return REJECTED;
    return url.username === '' && url.password === '' ? { value: url.origin } : REJECTED;
  },
  format: String,
};

/** Compared with the `iss` of tokens character by character, so it stays as written. */
export const issuerUrl: Kind<string> = {
  accepts: 'an https URL (http only on loopback)',
  placeholder: 'url',
  parse(text): Parsed<string> {
    const url = parsedUrl(text);
    const local = url?.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
    return url?.protocol === 'https:' || local ? { value: text.trim() } : REJECTED;
  },
  format: String,
};

/** Usually contains a password. */
export const postgresUrl: Kind<string> = {
  accepts: 'a URL that begins with postgres://',
  placeholder: 'url',
  isSecret: true,
  parse(text) {
    const url = parsedUrl(text);
    return url?.protocol === 'postgres:' || url?.protocol === 'postgresql:' ? { value: text.trim() } : REJECTED;
  },
  format: () => '(not shown)',
};

/** The URL of a chat service is itself the key to it. */
export const notifyTarget: Kind<string> = {
  accepts: 'an http or https URL, or a command',
  placeholder: 'url|command',
  isSecret: true,
  parse(text) {
    const written = text.trim();
    if (written === '' || written.includes('\0')) return REJECTED;
    return /^https?:/i.test(written) && parsedUrl(written) === undefined ? REJECTED : { value: written };
  },
  format: () => '(not shown)',
};

function parsedUrl(text: string): URL | undefined {
  return URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
}

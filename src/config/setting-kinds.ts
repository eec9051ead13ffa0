import { realpathSync, statSync } from 'node:fs';
import { absolutePath, pathsOf, type Host } from './host.ts';
import { quote } from './bad-input.ts';

export type Parsed<T> = { readonly value: T } | { readonly problem: string | undefined };

/** How one kind of value is written, read and described. */
export interface Kind<T> {
  /** Completes "it takes …". */
  readonly accepts: string;
  /** Stands for the value in the help. */
  readonly placeholder: string;
  /** A switch is on when its flag is given without a value. */
  readonly isSwitch?: true;
  /** All that it can be, where that is a few words. */
  readonly words?: readonly string[];
  /** The value of a secret is never shown. */
  readonly isSecret?: true;
  parse(text: string, host: Host): Parsed<T>;
  /** The inverse of `parse`. */
  format(value: T, host: Pick<Host, 'platform'>): string;
}

const REJECTED = { problem: undefined } as const;
const ON_WORDS = ['1', 'true', 'on', 'yes'];
const OFF_WORDS = ['0', 'false', 'off', 'no'];

export function integer(min: number, max: number, placeholder = 'n'): Kind<number> {
  return {
    accepts: `a whole number from ${min} to ${max}`,
    placeholder,
    parse(text) {
      const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? { value } : REJECTED;
    },
    format: String,
  };
}

/** Node fires a timer at once when its delay does not fit in 31 bits. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const DURATION = /^(\d{1,15}) ?(ms|s|m|h)?$/i;

/** Plain milliseconds, or a number with its unit. */
export function milliseconds(min: number): Kind<number> {
  return {
    accepts: `milliseconds from ${min} to ${MAX_TIMER_MS}, or a duration such as 90s, 15m or 24h`,
    placeholder: 'ms',
    parse(text) {
      const [, digits, unit = 'ms'] = DURATION.exec(text.trim()) ?? [];
      const value = Number(digits) * UNITS_MS[unit.toLowerCase() as keyof typeof UNITS_MS];
      return value >= min && value <= MAX_TIMER_MS ? { value } : REJECTED;
    },
    format: String,
  };
}

/** As {@link milliseconds}, written in the largest unit that fits. */
export const duration: Kind<number> = {
  ...milliseconds(0),
  accepts: 'a duration such as 90s, 15m or 24h, or milliseconds',
  placeholder: 'duration',
  format(value) {
    const units = (Object.keys(UNITS_MS) as (keyof typeof UNITS_MS)[]).reverse();
    const unit = units.find((name) => value >= UNITS_MS[name] && value % UNITS_MS[name] === 0) ?? 'ms';
    return `${value / UNITS_MS[unit]}${unit}`;
  },
};

export const dollars: Kind<number> = {
  accepts: 'an amount in US dollars above 0, such as 2.50',
  placeholder: 'usd',
  parse(text) {
    const value = /^\d{1,12}(\.\d{1,12})?$/.test(text.trim()) ? Number(text) : Number.NaN;
    return value > 0 ? { value } : REJECTED;
  },
  format: String,
};

/** One of a few words; `synonyms` are read but not advertised. */
export function choice<const Words extends readonly string[]>(
  words: Words,
  synonyms: Readonly<Record<string, Words[number]>> = {},
): Kind<Words[number]> {
  const meanings = new Map<string, Words[number]>([
    ...Object.entries(synonyms),
    ...words.map((word) => [word, word] as const),
  ]);
  return {
    accepts: words.join(', ').replace(/, ([^,]*)$/, ' or $1'),
    placeholder: words.join('|'),
    words,
    parse(text) {
      const value = meanings.get(text.trim().toLowerCase());
      return value === undefined ? REJECTED : { value };
    },
    format: String,
  };
}

export const onOff: Kind<boolean> = {
  accepts: '1, true, on, yes, 0, false, off or no',
  placeholder: '',
  isSwitch: true,
  parse(text) {
    const word = text.trim().toLowerCase();
    if (ON_WORDS.includes(word)) return { value: true };
    return OFF_WORDS.includes(word) ? { value: false } : REJECTED;
  },
  format: (value) => (value ? 'on' : 'off'),
};

export const filePath: Kind<string> = {
  accepts: 'a path',
  placeholder: 'path',
  parse(text, host) {
    const written = text.trim();
    return written === '' || written.includes('\0') ? REJECTED : { value: absolutePath(written, host) };
  },
  format: String,
};

/**
 * A path, or a bare name that is looked up as a shell would do. A name that is not found stays a name: as a path it
 * would mean a file in the working directory, which anyone may have put there.
 */
export const program: Kind<string> = {
  ...filePath,
  accepts: 'the path of a program, or its name on PATH',
  parse(text, host) {
    const name = text.trim();
    if (!isBareName(name)) return filePath.parse(text, host);
    return { value: findProgram(name, host) ?? name };
  },
};

/** True of a program that is named but was not found. */
export function isBareName(program: string): boolean {
  return /^[^/\\~\0]+$/.test(program);
}

/** Where a shell would find it. */
export function findProgram(name: string, host: Omit<Host, 'cwd'>): string | undefined {
  const paths = pathsOf(host);
  const fileNames = host.platform === 'win32' ? [`${name}.exe`, name] : [name];
  const searched = (host.env['PATH'] ?? '').split(paths.delimiter).filter((directory) => paths.isAbsolute(directory));
  return [...searched, ...(name === 'claude' ? placesOfClaudeCode(host) : [])]
    .flatMap((directory) => fileNames.map((fileName) => paths.join(directory, fileName)))
    .find(isReachableFile);
}

/** Like a shell, passes over a directory that this user may not search. */
function isReachableFile(candidate: string): boolean {
  try {
    return statSync(candidate).isFile();
  } catch {
    return false;
  }
}

/** Where its installers put it: desktop apps pass on a PATH without these directories. */
function placesOfClaudeCode(host: Omit<Host, 'cwd'>): string[] {
  const paths = pathsOf(host);
  const own = ['.local/bin', '.claude/local'].map((directory) => paths.join(host.homedir, directory));
  return host.platform === 'win32' ? own : [...own, '/opt/homebrew/bin', '/usr/local/bin'];
}

export const filePathOrOff: Kind<string> = {
  ...filePath,
  accepts: 'a path, or off',
  placeholder: 'path|off',
  parse(text, host) {
    const word = text.trim().toLowerCase();
    if (OFF_WORDS.includes(word)) return { value: 'off' };
    return ON_WORDS.includes(word) ? REJECTED : filePath.parse(text, host);
  },
};

/** Compared with other paths, so links are resolved once and for all. */
export const directory: Kind<string> = {
  accepts: 'an existing directory',
  placeholder: 'dir',
  parse(text, host) {
    const written = text.trim();
    const real = written === '' ? undefined : realDirectory(absolutePath(written, host));
    return real === undefined ? REJECTED : { value: real };
  },
  format: String,
};

/** An empty list is refused: for a limit, "no directory named" must never come to mean "any directory". */
export const directories: Kind<readonly string[]> = {
  accepts: `existing directories, separated by ":" (";" on Windows), commas or line breaks`,
  placeholder: 'dirs',
  parse(text, host) {
    const written = directoriesIn(text, host);
    if (written.length === 0) return { problem: 'it contains no directory' };
    const real: string[] = [];
    for (const directory of written) {
      const resolved = realDirectory(absolutePath(directory, host));
      if (resolved === undefined) return { problem: `${quote(directory)} is not an existing directory` };
      real.push(resolved);
    }
    return { value: [...new Set(real)] };
  },
  format: (value, host) => value.join(pathsOf(host).delimiter),
};

/** A comma may be part of a name: it only separates if the whole string is not a directory. */
function directoriesIn(text: string, host: Host): string[] {
  const isDirectory = (part: string): boolean => realDirectory(absolutePath(part.trim(), host)) !== undefined;
  return text
    .split('\n')
    .flatMap((line) => line.split(pathsOf(host).delimiter))
    .flatMap((part) => (part.includes(',') && !isDirectory(part) ? part.split(',') : [part]))
    .map((part) => part.trim())
    .filter(Boolean);
}

function realDirectory(directory: string): string | undefined {
  try {
    const resolved = realpathSync.native(directory);
    return statSync(resolved).isDirectory() ? resolved : undefined;
  } catch {
    return undefined;
  }
}

export const names: Kind<readonly string[]> = {
  accepts: 'comma-separated names',
  placeholder: 'names',
  parse(text) {
    const value = text
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean);
    return { value: [...new Set(value)] };
  },
  format: (value) => value.join(','),
};

const HOST = /^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

/** A misspelt host must not open more than intended: no URLs, no lone `*`. */
export const hosts: Kind<readonly string[]> = {
  ...names,
  accepts: 'comma-separated host names, such as registry.npmjs.org,*.github.com',
  placeholder: 'hosts',
  parse(text, host) {
    const parsed = names.parse(text, host);
    const bad = 'value' in parsed ? parsed.value.find((name) => !HOST.test(name)) : undefined;
    return bad === undefined ? parsed : { problem: `${quote(bad)} is not a valid host name` };
  },
};

export const text: Kind<string> = {
  accepts: 'non-blank text',
  placeholder: 'text',
  parse: (written) => (written.trim() === '' ? REJECTED : { value: written.trim() }),
  format: String,
};

export const secret: Kind<string> = {
  accepts: 'non-blank text',
  placeholder: 'secret',
  isSecret: true,
  parse: (text) => (text.trim() === '' ? REJECTED : { value: text }),
  format: () => '(not shown)',
};

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

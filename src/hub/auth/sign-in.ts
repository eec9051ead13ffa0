import { randomBytes, createHash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { openOwnFile } from '../../platform/own-file.ts';

/** A link is opened right away or not at all. */
const LIFETIME_MS = 2 * 60_000;
/** Anyone asking for more has lost the earlier ones. */
const MAX_CODES = 100;

/** Codes in the links of `hub open`: each is valid for one sign-in as admin, for two minutes, in this process only. */
export class SignInCodes {
  readonly #now: () => number;
  /** Hash of a code, and when it expires; oldest first. */
  readonly #codes = new Map<string, number>();
  readonly #onGone: (hash: string) => void;

  /** `onGone` is called for each code that was used or never will be. */
  constructor(now: () => number = Date.now, onGone: (hash: string) => void = () => undefined) {
    this.#now = now;
    this.#onGone = onGone;
  }

  issue(): string {
    this.#dropExpired();
    const [oldest] = this.#codes.keys();
    if (oldest !== undefined && this.#codes.size >= MAX_CODES) this.#drop(oldest);
    const code = randomBytes(32).toString('base64url');
    this.#codes.set(hashOfCode(code), this.#now() + LIFETIME_MS);
    setTimeout(() => this.#dropExpired(), LIFETIME_MS).unref();
    return code;
  }

  /** True once for each code. */
  redeem(code: string): boolean {
    this.#dropExpired();
    return this.#drop(hashOfCode(code));
  }

  #dropExpired(): void {
    for (const [hash, expiresAt] of this.#codes) if (expiresAt <= this.#now()) this.#drop(hash);
  }

  #drop(hash: string): boolean {
    const isKnown = this.#codes.delete(hash);
    if (isKnown) this.#onGone(hash);
    return isKnown;
  }
}

const NAME = /^hub-open-[0-9a-f]{64}\.html$/;

/**
 * A page that leads to the dashboard with the code of a sign-in. The browser is given its path: the link itself would
 * appear in a process's arguments, which every user of the machine can read.
 */
export async function writeSignInPage(stateDir: string, link: string, code: string): Promise<string> {
  const file = pageFile(stateDir, hashOfCode(code));
  const handle = await openOwnFile(file, 'create');
  try {
    await handle.writeFile(pageTo(link));
  } finally {
    await handle.close();
  }
  return file;
}

/** The page for this code; does nothing if there is none. */
export async function removeSignInPage(stateDir: string, hash: string): Promise<void> {
  await rm(pageFile(stateDir, hash), { force: true });
}

/** Those of a hub that is gone: their codes are no longer valid. */
export async function removeSignInPages(stateDir: string): Promise<void> {
  const names = (await readdir(stateDir)).filter((name) => NAME.test(name));
  await Promise.all(names.map((name) => rm(path.join(stateDir, name), { force: true })));
}

/** Codes are looked up by their hash, so that timing reveals nothing about them. */
function hashOfCode(code: string): string {
  return createHash('sha256').update(code).digest('hex');
}

function pageFile(stateDir: string, hash: string): string {
  return path.join(stateDir, `hub-open-${hash}.html`);
}

function pageTo(link: string): string {
  const target = link.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${target}">
<title>claude-code-mcp</title>
<p><a href="${target}">Open the dashboard</a></p>
</html>
`;
}

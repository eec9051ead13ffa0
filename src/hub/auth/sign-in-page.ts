import { createHash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { openOwnFile } from '../../platform/own-file.ts';

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
export function hashOfCode(code: string): string {
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

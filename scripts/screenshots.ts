/**
 * `node scripts/run.mjs screenshots`: takes the screenshots for README and docs/hub.md from `demo --dashboard`, so that they show
 * what exists. Uses a running demo if given its link and token; `--check` saves nothing.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { DESKTOP, openBrowser, openPage, PHONE } from '../test/browser/browser.ts';
import { builtServer } from '../test/harness/built-server.ts';

const START_WITHIN_MS = 120_000;
const program = builtServer();
const { values, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true });
const docs = path.join(path.dirname(program), '..', 'docs');

const [runningLink, runningToken] = positionals;
const demo =
  runningLink === undefined
    ? spawn(process.execPath, [program, 'demo', '--dashboard'], { stdio: ['ignore', 'pipe', 'inherit'] })
    : undefined;
const browser = await openBrowser();
try {
  const { link, token } = demo ? await linkOf(demo.stdout) : { link: runningLink ?? '', token: runningToken ?? '' };
  const address = new URL('/', link).href;
  await take('dashboard-desktop.png', { viewport: DESKTOP }, async (page) => {
    await page.goto(link);
    await openRequest(page);
  });
  await take('dashboard-phone.png', { viewport: PHONE, touch: true }, async (page) => {
    await signIn(page, address, token);
    await openRequest(page);
  });
  await take('dashboard-dark.png', { viewport: DESKTOP, dark: true }, async (page) => {
    await signIn(page, address, token);
    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByText('Write a guide for contributors').click();
    await page.getByText('Next is section').first().waitFor();
  });
} finally {
  await browser.close();
  if (demo) {
    demo.kill('SIGINT');
    await once(demo, 'exit');
  }
}

async function take(
  name: string,
  options: Parameters<typeof openPage>[1],
  show: (page: Page) => Promise<void>,
): Promise<void> {
  const { page, context } = await openPage(browser, options);
  page.setDefaultTimeout(START_WITHIN_MS);
  await show(page);
  await page.screenshot(values.check ? {} : { path: path.join(docs, name) });
  await context.close();
  console.log(name);
}

async function signIn(page: Page, address: string, token: string): Promise<void> {
  await page.goto(address);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('status').getByText('Connected').waitFor();
}

async function openRequest(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  await page.locator('.diff').waitFor();
}

/** Read from the demo's output. */
function linkOf(stdout: Readable): Promise<{ link: string; token: string }> {
  return new Promise((resolve, reject) => {
    let output = '';
    stdout.on('data', (piece: Buffer) => {
      output += piece.toString();
      const [, link] = /(http:\S+#code=\S+)/.exec(output) ?? [];
      const [, token] = /(ccmcp_[\w-]+)\s/.exec(output) ?? [];
      if (link !== undefined && token !== undefined) resolve({ link, token });
    });
    stdout.once('end', () => reject(new Error(`the demo printed no link: ${output}`)));
  });
}

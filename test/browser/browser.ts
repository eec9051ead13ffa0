import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

/** Chromium from npm on Linux, the installed Chrome elsewhere. */
export async function openBrowser(): Promise<Browser> {
  if (process.platform !== 'linux') return chromium.launch({ channel: 'chrome' });
  if (!existsSync(path.join(tmpdir(), 'chromium'))) await unpackChromium();
  const { default: packaged } = await import('@sparticuz/chromium');
  return chromium.launch({
    executablePath: await packaged.executablePath(),
    // Not the package's own arguments: they disable the web security under test.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu', '--headless=new', '--font-render-hinting=none'],
  });
}

/**
 * The package unpacks itself into the temporary directory, where another test that starts at the same time would find it
 * half written. So it is unpacked elsewhere and moved into place, the program last.
 */
async function unpackChromium(): Promise<void> {
  const apart = await mkdtemp(path.join(tmpdir(), 'chromium-apart-'));
  try {
    const program = "import('@sparticuz/chromium').then(({ default: packaged }) => packaged.executablePath())";
    await promisify(execFile)(process.execPath, ['--eval', program], {
      cwd: import.meta.dirname,
      env: { ...process.env, TMPDIR: apart },
    });
    const unpacked = (await readdir(apart)).filter((name) => name !== 'chromium');
    for (const name of [...unpacked, 'chromium']) {
      await rename(path.join(apart, name), path.join(tmpdir(), name)).catch((error: unknown) => {
        // A directory that another test has moved there first cannot be replaced.
        if (!['ENOTEMPTY', 'EEXIST'].includes(String((error as NodeJS.ErrnoException).code))) throw error;
      });
    }
  } finally {
    await rm(apart, { recursive: true, force: true });
  }
}

export const PHONE = { width: 360, height: 740 };
export const DESKTOP = { width: 1280, height: 860 };

export interface OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Every host the page sent a request to. */
  readonly hosts: Set<string>;
  /** Uncaught exceptions and console errors. */
  readonly errors: string[];
}

export async function openPage(
  browser: Browser,
  options: { viewport?: { width: number; height: number }; dark?: boolean; touch?: boolean } = {},
): Promise<OpenPage> {
  const { viewport = DESKTOP, dark = false, touch = false } = options;
  const context = await browser.newContext({
    viewport,
    colorScheme: dark ? 'dark' : 'light',
    hasTouch: touch,
    isMobile: touch,
    reducedMotion: 'reduce',
    locale: 'en-GB',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const hosts = new Set<string>();
  const errors: string[] = [];
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    // Chromium logs every failed request itself.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      errors.push(message.text());
  });
  return { page, context, hosts, errors };
}

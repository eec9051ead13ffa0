import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

/** Chromium from npm on Linux, the installed Chrome elsewhere. */
export async function openBrowser(): Promise<Browser> {
  if (process.platform !== 'linux') return chromium.launch({ channel: 'chrome' });
  const { default: packaged } = await import('@sparticuz/chromium');
  return chromium.launch({
    executablePath: await packaged.executablePath(),
    // Not the package's own arguments: they disable the web security under test.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu', '--headless=new', '--font-render-hinting=none'],
  });
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

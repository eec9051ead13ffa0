import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

/** Chromium from npm on Linux, the installed Chrome elsewhere. */
export async function openBrowser(): Promise<Browser> {
  if (process.platform !== 'linux') return chromium.launch({ channel: 'chrome' });
  const { default: packaged } = await import('@sparticuz/chromium');
  return chromium.launch({
    executablePath: await packaged.executablePath(),
    // Not the package's own arguments: they switch off the web security that is tested here.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu', '--headless=new', '--font-render-hinting=none'],
  });
}

export const PHONE = { width: 360, height: 740 };
export const DESKTOP = { width: 1280, height: 860 };

export interface OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Hosts that anything was asked of. */
  readonly hosts: Set<string>;
  /** Errors and refusals that the browser reported. */
  readonly complaints: string[];
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
  const complaints: string[] = [];
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // Chromium itself reports every refused or failed request.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  return { page, context, hosts, complaints };
}

import path from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { openBrowser, openPage, type OpenPage } from './browser.ts';
import { pressOn, signInWith } from './page-steps.ts';
import { RealHub } from './real-hub.ts';

/** The real hub and one browser for all journeys. A journey's pages are closed after it. */
export class JourneyWorld {
  #hub: RealHub | undefined;
  #browser: Browser | undefined;
  readonly #pages: OpenPage[] = [];

  get hub(): RealHub {
    if (!this.#hub) throw new Error('The hub is only open while tests run');
    return this.#hub;
  }

  register(): this {
    beforeAll(async () => {
      [this.#hub, this.#browser] = await Promise.all([RealHub.open(), openBrowser()]);
    }, 90_000);
    afterAll(async () => {
      await this.#browser?.close();
      await this.#hub?.close();
    }, 60_000);
    afterEach(async () => {
      const opened = this.#pages.splice(0);
      for (const { context } of opened) await context.close();
      expect(opened.flatMap(({ errors }) => errors)).toEqual([]);
      for (const { hosts } of opened) expect(hosts.size, [...hosts].join()).toBeLessThanOrEqual(1);
    });
    return this;
  }

  async open(options: Parameters<typeof openPage>[1] = {}): Promise<OpenPage> {
    if (!this.#browser) throw new Error('The browser is only open while tests run');
    const opened = await openPage(this.#browser, options);
    this.#pages.push(opened);
    return opened;
  }

  /** Signs in as admin unless another token is given. */
  async openSignedIn({
    token = this.hub.admin,
    ...options
  }: Parameters<typeof openPage>[1] & { token?: string } = {}): Promise<Page> {
    const { page } = await this.open(options);
    await page.goto(this.hub.url);
    await signInWith(page, token);
    return page;
  }

  /** The path of a file in the hub's project directory. */
  file(name: string): string {
    return path.join(this.hub.home.project, name);
  }
}

/** The request card of the session with this title. */
export function cardOf(page: Page, title: string): Locator {
  return page.locator('article.request', { hasText: title });
}

export function clickButton(page: Page, title: string, name: string): Promise<void> {
  return pressOn(cardOf(page, title), name);
}

/** Waits until the session page shows this state. */
export async function waitForState(page: Page, state: string): Promise<void> {
  await page.locator('.session-title').getByText(state, { exact: true }).waitFor();
}

export async function sendMessage(page: Page, message: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(message);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
}

/** Steps on any page of the dashboard. Independent of vitest, so that scripts can use them too. */

import type { Locator, Page } from 'playwright-core';

export async function signInWith(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await waitUntilConnected(page);
}

export async function waitUntilConnected(page: Page): Promise<void> {
  await page.getByRole('status').getByText('Connected').waitFor();
}

/** Presses a button of a request card. */
export async function pressOn(card: Locator, name: string): Promise<void> {
  if (/\ballow\b/i.test(name)) await seeAll(card);
  await card.getByRole('button', { name, exact: true }).click();
}

/** A press of Allow only shows what has not been on the screen yet: reads the card first, as a person would. */
export async function seeAll(card: Locator): Promise<void> {
  for (const part of await card.locator('.part').all()) {
    await part.scrollIntoViewIfNeeded();
    // What is on the screen is measured once per frame.
    await card.page().evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
  }
}

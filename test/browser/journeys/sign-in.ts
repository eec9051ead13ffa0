import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { text } from '../../../src/scripted-model/reply.ts';
import { openApi } from '../../hub/api-world.ts';
import { openHttpHub } from '../../hub/http-hub.ts';
import { seriousFindings } from '../axe.ts';
import { BUILT } from '../fixture-hub.ts';
import type { JourneyWorld } from '../journey-world.ts';
import { signInWith, waitUntilConnected } from '../page-steps.ts';
import { controls } from './sessions.ts';

/** The page cannot read the response. */
const UNREADABLE = /^(refused|opaque0)$/;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

export function signIn(world: JourneyWorld): void {
  test('a link signs in once, and neither again nor from a page of another origin', async () => {
    const { hub } = world;
    const link = await hub.link();
    const first = await world.open();

    // An agent's own dev server: it has the same host, so the browser sends it the hub's cookies.
    let cookies = '';
    const devServer = createServer((request, response) => {
      cookies = request.headers.cookie ?? '';
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>dev server</p>');
    });
    await new Promise<void>((resolve) => devServer.listen(0, '127.0.0.1', resolve));
    const devServerUrl = `http://127.0.0.1:${(devServer.address() as AddressInfo).port}/`;
    const other = await first.context.newPage();
    const ask = (route: string, init: string) =>
      other.evaluate<string>(
        `fetch('${hub.url}api/v1/${route}', ${init}).then((response) => response.type + response.status, () => 'refused')`,
      );
    try {
      await other.goto(devServerUrl);
      const [, code = ''] = link.split('#code=');
      const exchange = (type: string) =>
        `{ method: 'POST', mode: '${type === 'text/plain' ? 'no-cors' : 'cors'}', credentials: 'include', headers: { 'content-type': '${type}' }, body: '${JSON.stringify({ code })}' }`;
      expect(await ask('sign-in', exchange('application/json'))).toBe('refused');
      expect(await ask('sign-in', exchange('text/plain'))).toMatch(UNREADABLE);

      // Neither attempt used up the code.
      await first.page.goto(link);
      await first.page.getByRole('heading', { name: 'Inbox' }).waitFor();
      expect(new URL(first.page.url()).hash).not.toContain('code');
      await first.page.reload();
      await first.page.getByRole('heading', { name: 'Inbox' }).waitFor();

      const second = await world.open();
      await second.page.goto(link);
      await second.page.getByText('This link is no longer valid').waitFor();
      await second.page.getByLabel('Token').waitFor();

      await other.goto(devServerUrl);
      expect(cookies).not.toBe('');
      expect(await ask('sessions', `{ credentials: 'include' }`)).toBe('refused');
      expect(await ask('sessions', `{ credentials: 'include', mode: 'no-cors' }`)).toMatch(UNREADABLE);
      expect(await other.evaluate<number>('localStorage.length')).toBe(0);
      // The cookie alone is not a credential, even outside the browser.
      const stolen = await fetch(`${hub.url}api/v1/sessions`, { headers: { cookie: cookies } });
      expect(stolen.status).toBe(401);
    } finally {
      await other.close();
      devServer.closeAllConnections();
      await new Promise((resolve) => devServer.close(resolve));
    }
  });

  test('a link expires after two minutes and a sign-in after twelve hours, each with an explanation; a draft is kept', async () => {
    let now = Date.now();
    const api = await openApi();
    const hub = await openHttpHub({
      store: api.store,
      routes: api.routes,
      dashboardDir: BUILT,
      now: () => now,
      slowDown: async () => undefined,
    });
    const { page } = await world.open();
    const late = hub.codes.issue();
    now += 2 * MINUTE;
    await page.goto(`${hub.url}/#code=${late}`);
    await page.getByText('This link is no longer valid').waitFor();
    await page.getByText('within two minutes').waitFor();
    await page.goto(`${hub.url}/#code=${hub.codes.issue()}`);
    await waitUntilConnected(page);
    await page.getByRole('button', { name: 'New session' }).click();
    await page.getByLabel('Prompt').fill('A thought that took twelve hours');
    now += 12 * HOUR - 1;
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await page.getByText('No sessions yet').waitFor();
    now += 1;
    // No click is needed: the hub ends the stream.
    await page.getByText('Your sign-in has ended: it expired or was revoked.').waitFor();
    await page.goto(`${hub.url}/#code=${hub.codes.issue()}`);
    await waitUntilConnected(page);
    await page.getByRole('button', { name: 'New session' }).click();
    expect(await page.getByLabel('Prompt').inputValue()).toBe('A thought that took twelve hours');
  });

  test('each role sees its own pages and controls, and a revoked sign-in ends at once', async () => {
    const { hub } = world;
    hub.model.on('Rest here').reply(text('Resting.'));
    const { sessionId } = await hub.startSession({
      prompt: 'Rest here',
      title: 'Rested',
      workspace: { type: 'worktree' },
    });
    const tokens = {
      Vera: await hub.token('Vera', 'viewer'),
      Carl: await hub.token('Carl', 'caller'),
      Otto: hub.caller,
      Anna: await hub.token('Anna', 'approver'),
      Adam: hub.admin,
    };
    const { page } = await world.open();
    await page.goto(hub.url);
    const seen: Record<string, { pages: string[]; controls: string[]; workControls: string[] }> = {};
    for (const [name, token] of Object.entries(tokens)) {
      await signInWith(page, token);
      const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts();
      await page.goto(`${hub.url}#/sessions/${sessionId}`);
      await page.getByRole('heading', { name: 'Rested' }).or(page.getByText('There is no such session')).waitFor();
      const shown = await controls(page);
      await page.goto(`${hub.url}#/sessions/${sessionId}/work`);
      if (name !== 'Carl') await page.getByText('No files have changed').waitFor();
      seen[name] = {
        pages: links,
        controls: shown,
        workControls: (await controls(page)).filter((one) => !shown.includes(one)),
      };
      await page.getByRole('button', { name: 'Sign out' }).click();
    }
    expect(seen).toEqual({
      Vera: { pages: ['Inbox', 'Sessions', 'Rules', 'Audit'], controls: [], workControls: [] },
      Carl: { pages: ['Inbox', 'Sessions'], controls: ['New session'], workControls: [] },
      Otto: {
        pages: ['Inbox', 'Sessions'],
        controls: ['New session', 'Send', 'Cancel session', 'Fork'],
        workControls: ['Apply', 'Discard'],
      },
      Anna: { pages: ['Inbox', 'Sessions', 'Rules', 'Audit'], controls: ['Cancel session'], workControls: [] },
      Adam: {
        pages: ['Inbox', 'Sessions', 'Rules', 'Audit', 'Tokens'],
        controls: ['New session', 'Send', 'Cancel session', 'Fork'],
        workControls: ['Apply', 'Discard'],
      },
    });

    const admin = await world.openSignedIn();
    await signInWith(page, tokens.Vera);
    await admin.getByRole('link', { name: 'Tokens', exact: true }).click();
    const signIns = admin.getByRole('region', { name: 'Sign-ins' });
    await signIns.getByRole('button', { name: 'Revoke Vera' }).click();
    await admin.getByRole('button', { name: 'Yes, revoke it' }).click();
    await page.getByText('Your sign-in has ended').waitFor();
    await admin.getByRole('link', { name: 'Audit', exact: true }).click();
    await admin.getByText('sign-in').first().waitFor();
    expect(await seriousFindings(admin)).toEqual([]);
  });
}

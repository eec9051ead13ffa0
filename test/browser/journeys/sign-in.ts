import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { text } from '../../../src/scripted-model/reply.ts';
import { openApi } from '../../hub/api-world.ts';
import { openHttpHub } from '../../hub/http-hub.ts';
import { seriousFindings } from '../axe.ts';
import { BUILT } from '../fixture-hub.ts';
import { connected, signInWith, type JourneyWorld } from '../journey-world.ts';
import { controls } from './sessions.ts';

/** The browser shows nothing of the answer. */
const UNREADABLE = /^(refused|opaque0)$/;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

export function signIn(world: JourneyWorld): void {
  test('a link signs in once; used again, or by a page of another origin, it opens nothing', async () => {
    const { hub } = world;
    const link = await hub.link();
    const first = await world.open();

    // An agent's own dev server: the same host, so the browser sends it the cookies of the hub.
    let cookies = '';
    const stranger = createServer((request, response) => {
      cookies = request.headers.cookie ?? '';
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>dev server</p>');
    });
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    const strange = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/`;
    const other = await first.context.newPage();
    const ask = (route: string, init: string) =>
      other.evaluate<string>(
        `fetch('${hub.url}api/v1/${route}', ${init}).then((response) => response.type + response.status, () => 'refused')`,
      );
    try {
      await other.goto(strange);
      const [, code = ''] = link.split('#code=');
      const exchange = (type: string) =>
        `{ method: 'POST', mode: '${type === 'text/plain' ? 'no-cors' : 'cors'}', credentials: 'include', headers: { 'content-type': '${type}' }, body: '${JSON.stringify({ code })}' }`;
      expect(await ask('sign-in', exchange('application/json'))).toBe('refused');
      expect(await ask('sign-in', exchange('text/plain'))).toMatch(UNREADABLE);

      // Neither of these used it up.
      await first.page.goto(link);
      await first.page.getByRole('heading', { name: 'Inbox' }).waitFor();
      expect(new URL(first.page.url()).hash).not.toContain('code');
      await first.page.reload();
      await first.page.getByRole('heading', { name: 'Inbox' }).waitFor();

      const second = await world.open();
      await second.page.goto(link);
      await second.page.getByText('This link is no longer valid').waitFor();
      await second.page.getByLabel('Token').waitFor();

      await other.goto(strange);
      expect(cookies).not.toBe('');
      expect(await ask('sessions', `{ credentials: 'include' }`)).toBe('refused');
      expect(await ask('sessions', `{ credentials: 'include', mode: 'no-cors' }`)).toMatch(UNREADABLE);
      expect(await other.evaluate<number>('localStorage.length')).toBe(0);
      // What it got is not enough for whoever reads it there, either.
      const stolen = await fetch(`${hub.url}api/v1/sessions`, { headers: { cookie: cookies } });
      expect(stolen.status).toBe(401);
    } finally {
      await other.close();
      stranger.closeAllConnections();
      await new Promise((resolve) => stranger.close(resolve));
    }
  });

  test('a link older than two minutes opens nothing, and a sign-in ends after twelve hours, both with words', async () => {
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
    await connected(page);
    await page.getByRole('button', { name: 'New session' }).click();
    await page.getByLabel('Prompt').fill('A thought that took twelve hours');
    now += 12 * HOUR - 1;
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await page.getByText('No sessions yet').waitFor();
    now += 1;
    // Nobody clicks: the hub ends the stream by itself.
    await page.getByText('Your sign-in has ended: it expired or was revoked.').waitFor();
    await page.goto(`${hub.url}/#code=${hub.codes.issue()}`);
    await connected(page);
    await page.getByRole('button', { name: 'New session' }).click();
    expect(await page.getByLabel('Prompt').inputValue()).toBe('A thought that took twelve hours');
  });

  test('each role has its own controls, and a sign-in that is revoked ends at once', async () => {
    const { hub } = world;
    hub.model.on('Rest here').reply(text('Resting.'));
    const { sessionId } = await hub.begin({ prompt: 'Rest here', title: 'Rested', workspace: { type: 'worktree' } });
    const tokens = {
      Vera: await hub.token('Vera', 'viewer'),
      Carl: await hub.token('Carl', 'caller'),
      Otto: hub.caller,
      Anna: await hub.token('Anna', 'approver'),
      Adam: hub.admin,
    };
    const { page } = await world.open();
    await page.goto(hub.url);
    const seen: Record<string, { pages: string[]; controls: string[]; settles: string[] }> = {};
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
        settles: (await controls(page)).filter((one) => !shown.includes(one)),
      };
      await page.getByRole('button', { name: 'Sign out' }).click();
    }
    expect(seen).toEqual({
      Vera: { pages: ['Inbox', 'Sessions', 'Audit'], controls: [], settles: [] },
      Carl: { pages: ['Inbox', 'Sessions'], controls: ['New session'], settles: [] },
      Otto: {
        pages: ['Inbox', 'Sessions'],
        controls: ['New session', 'Send', 'Cancel session', 'Fork'],
        settles: ['Apply', 'Discard'],
      },
      Anna: { pages: ['Inbox', 'Sessions', 'Audit'], controls: ['Cancel session'], settles: [] },
      Adam: {
        pages: ['Inbox', 'Sessions', 'Audit', 'Tokens'],
        controls: ['New session', 'Send', 'Cancel session', 'Fork'],
        settles: ['Apply', 'Discard'],
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

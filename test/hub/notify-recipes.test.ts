/** The recipes in `docs/hub.md`, each tried against a stand-in of what receives them. */

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { notifyTarget } from '../../src/hub/notify/notify-target.ts';
import type { Note } from '../../src/hub/notify/notify-target.ts';
import { temporaryDirectory } from '../store/stores.ts';

const RECIPE = `"${process.execPath}" "${path.resolve('examples/notify.mjs')}"`;

const OPENED: Note = {
  id: 'request.opened r1',
  type: 'request.opened',
  time: '2026-01-01T00:00:00.000Z',
  session: { id: '12345678-90ab', status: 'waiting_permission' },
  request: { id: 'r1', kind: 'permission', toolName: 'Bash' },
  link: 'https://hub.example/#/sessions/12345678-90ab',
};
const RESTED: Note = { ...OPENED, id: 'session.rested s1', type: 'session.rested', request: undefined };

async function openReceiver(status: number) {
  const received: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      received.push({ headers: request.headers, body });
      response.writeHead(status, { location: 'http://127.0.0.1:9/' }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/topic`, received };
}

function notify(command: string, note: Note) {
  return notifyTarget(command, undefined)(JSON.stringify(note), new AbortController().signal);
}

test('ntfy gets a title, a text and the link', async () => {
  const { url, received } = await openReceiver(200);
  for (const note of [OPENED, RESTED]) expect(await notify(`${RECIPE} ntfy ${url}`, note)).toEqual({ ok: true });
  expect(received).toMatchObject([
    {
      body: 'It asks to use Bash.',
      headers: { title: 'Claude needs an answer', click: OPENED.link, priority: 'high' },
    },
    { body: 'Session 12345678 is waiting_permission.', headers: { title: 'Claude has finished', priority: 'default' } },
  ]);
});

test('Slack gets a message with a link', async () => {
  const { url, received } = await openReceiver(200);
  expect(await notify(`${RECIPE} slack ${url}`, OPENED)).toEqual({ ok: true });
  expect(JSON.parse(received[0]!.body)).toEqual({
    text: `*Claude needs an answer*\nIt asks to use Bash. <${OPENED.link}|Open>`,
  });
});

test.each([500, 302])('a service that answers %i is tried again by the hub', async (status) => {
  const { url } = await openReceiver(status);
  expect(await notify(`${RECIPE} slack ${url}`, OPENED)).toMatchObject({ ok: false });
});

test.skipIf(process.platform === 'win32')('the desktop shows it, and runs nothing that is in it', async () => {
  const directory = await temporaryDirectory();
  const output = path.join(directory, 'shown');
  for (const program of ['notify-send', 'osascript']) {
    await writeFile(path.join(directory, program), `#!/bin/sh\nprintf '%s|' "$@" > '${output}'\n`);
    await chmod(path.join(directory, program), 0o755);
  }
  const hostile: Note = { ...OPENED, request: { id: 'r1', kind: 'permission', toolName: '$(touch x) `id` "; --icon' } };
  expect(await notify(`PATH='${directory}':/usr/bin:/bin ${RECIPE} desktop`, hostile)).toEqual({ ok: true });
  const shown = await readFile(output, 'utf8');
  expect(shown).toContain('Claude needs an answer|It asks to use $(touch x) `id` "; --icon.');
});

/** A request that may no longer mean what it meant: the hub refuses to allow it until what changed is confirmed. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../../../src/cli/client/answering.ts';
import type { ClientContext } from '../../../src/cli/client/client.ts';
import { addressOfUrl, HubApi } from '../../../src/cli/client/hub-api.ts';
import type { ApiRequest } from '../../../src/schema/api.ts';
import { captureTerminal } from '../captured-terminal.ts';

const REQUEST = { requestId: 'r1', type: 'permission', toolName: 'Bash', input: {} } as ApiRequest;
const OUTCOME = { decision: 'allow', by: 'ann', source: 'human', at: '2026-01-02T03:04:05.000Z' };

/** Answers as the hub does: 409 until the digest is confirmed. */
async function hubThatAsksTwice(): Promise<{ api: HubApi; bodies: unknown[] }> {
  const bodies: unknown[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      bodies.push(body);
      const isConfirmed = (body as { confirm?: string }).confirm === 'd1';
      const changes = [{ what: 'file', text: 'notes.txt has changed\u001b[2J' }];
      const stale = { error: { code: 'stale', message: 'It is old.' }, stale: { ageMs: 1, changes, digest: 'd1' } };
      const answer = isConfirmed ? { request: { ...REQUEST, outcome: OUTCOME } } : stale;
      response.writeHead(isConfirmed ? 200 : 409, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { api: new HubApi(addressOfUrl(`http://127.0.0.1:${String(port)}`, 'ccmcp_x')), bodies };
}

test.each([
  { what: 'a person who confirms it', keys: ['y'], isAttended: true, kind: 'settled', sent: 2 },
  { what: 'a person who does not', keys: ['n'], isAttended: true, kind: 'quit', sent: 1 },
  { what: 'a script', keys: [], isAttended: false, kind: 'skipped', sent: 1 },
])('is shown to $what', async ({ keys, isAttended, kind, sent }) => {
  const { api, bodies } = await hubThatAsksTwice();
  const terminal = captureTerminal([], keys);
  const client: ClientContext = {
    ...{ api, terminal, hasToken: true, json: false, cwd: undefined, now: Date.now },
    signal: new AbortController().signal,
    say: (text) => terminal.write(`${text}\n`),
    print: () => undefined,
  };
  expect(await send(REQUEST, { decision: 'allow' }, client, isAttended)).toMatchObject({ kind });
  expect(bodies).toHaveLength(sent);
  expect(terminal.text).toContain('! notes.txt has changed\\u001b[2J');
  if (!isAttended) expect(terminal.text).toContain('--confirm d1');
});

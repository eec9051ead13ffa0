import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ROLES } from '../../src/schema/enums.ts';
import { FailedAttempts } from '../../src/hub/auth/authenticate.ts';
import { frameOf } from '../../src/hub/http/respond.ts';
import type { Route } from '../../src/hub/http/route.ts';
import type { SignInBody } from '../../src/schema/api.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { openHttpHub, type HttpHub } from './http-hub.ts';
import { request, sendRaw } from './raw-http.ts';

const EVERYBODY = ROLES;

const echo = (method: Route['method'], at: string, roles: Route['roles']): Route => ({
  method,
  path: at,
  roles,
  handler: async ({ principal, params, body }) => ({ status: 200, json: { principal, params, body } }),
});

const ROUTES: readonly Route[] = [
  echo('GET', '/api/v1/things', EVERYBODY),
  echo('GET', '/api/v1/things/{id}', EVERYBODY),
  echo('POST', '/api/v1/things/{id}/change', ['caller', 'admin']),
  echo('POST', '/api/v1/things/{id}/decide', ['approver', 'admin']),
  echo('DELETE', '/api/v1/things/{id}', ['admin']),
  echo('GET', '/metrics', ['viewer', 'admin']),
];

const at = ({ path: template }: Route): string => template.replace('{id}', 'one');

async function statusOf(hub: HttpHub, route: Route, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(hub.url + at(route), { method: route.method, headers });
  await response.arrayBuffer();
  return response.status;
}

test('without a credential only status, static files and sign-in answer, and unknown paths reveal nothing', async () => {
  const hub = await openHttpHub({ routes: ROUTES });
  const get = async (where: string, init?: RequestInit): Promise<[number, string]> => {
    const response = await fetch(hub.url + where, init);
    return [response.status, await response.text()];
  };
  expect(await get('/healthz')).toEqual([200, '{"status":"ok"}']);
  expect(await get('/healthz', { method: 'HEAD' })).toEqual([200, '']);
  expect(await get('/readyz')).toEqual([200, '{"status":"ready"}']);
  expect(await get('/')).toEqual([503, expect.stringContaining('dashboard')]);
  expect(await get('/api/v1/unknown')).toEqual([401, expect.stringContaining('UNAUTHENTICATED')]);
  expect(await get('/api/v1/sign-in', { method: 'PUT' })).toEqual([405, expect.any(String)]);
  expect((await get('/.well-known/oauth-protected-resource'))[0]).toBe(404);
  const challenge = (await fetch(`${hub.url}/mcp`, { method: 'POST' })).headers.get('www-authenticate');
  expect(challenge).toBe('Bearer realm="claude-code-mcp"');
});

test('the link from hub open signs in once, as the person at this machine', async () => {
  let now = 5_000_000;
  const hub = await openHttpHub({ routes: ROUTES, now: () => now });
  const code = hub.codes.issue();
  const first = await signIn(hub, { code });
  expect(first.status).toBe(200);
  expect(first.cookie).toMatch(/^claude-code-hub-\d+=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/);
  expect(first.body).toMatchObject({ principal: { id: 'person', kind: 'person', role: 'admin', attended: true } });
  expect((await signIn(hub, { code })).status).toBe(401);
  const late = hub.codes.issue();
  now += 120_001;
  expect((await signIn(hub, { code: late })).status).toBe(401);

  const { headers } = first;
  expect(await statusOf(hub, ROUTES[0]!, headers)).toBe(200);
  expect(await statusOf(hub, ROUTES[0]!, { cookie: headers.cookie })).toBe(401);
  expect(await statusOf(hub, ROUTES[0]!, { 'x-claude-code-key': headers['x-claude-code-key'] })).toBe(401);
  // A browser sign-in is valid for the API only; an MCP client needs a token.
  expect((await fetch(`${hub.url}/mcp`, { method: 'POST', headers })).status).toBe(401);
  now += 12 * 3_600_000;
  expect(await statusOf(hub, ROUTES[0]!, headers)).toBe(401);
});

test('a sign-in lasts 30 days where the person says so, but never longer than its token', async () => {
  let now = 5_000_000;
  const DAY = 24 * 3_600_000;
  const hub = await openHttpHub({ now: () => now, routes: ROUTES });
  const long = await signIn(hub, { code: hub.codes.issue(), stay: true });
  expect(long.cookie).toContain('Max-Age=2592000;');
  const token = await hub.token('viewer', { expiresAt: now + 7 * DAY });
  const week = await signIn(hub, { token, stay: true });
  now += 7 * DAY;
  expect(await statusOf(hub, ROUTES[0]!, week.headers)).toBe(401);
  now += 23 * DAY - 1;
  expect(await statusOf(hub, ROUTES[0]!, long.headers)).toBe(200);
  now += 1;
  expect(await statusOf(hub, ROUTES[0]!, long.headers)).toBe(401);
});

test('a cookie of the same name that another page has set does not lock anybody out', async () => {
  const hub = await openHttpHub({ routes: ROUTES });
  const { headers } = await signIn(hub, { code: hub.codes.issue() });
  const [name = ''] = headers.cookie.split('=');
  const foreign = Array.from({ length: 12 }, (_, index) => `${name}=${'x'.repeat(40)}${index}`);
  const cookie = [...foreign, headers.cookie].join('; ');
  expect(await statusOf(hub, ROUTES[0]!, { ...headers, cookie })).toBe(200);
  expect(await statusOf(hub, ROUTES[0]!, { ...headers, cookie: foreign.join('; ') })).toBe(401);
});

test('the sign-ins of one token are limited: the oldest ends, and too many within an hour are refused', async () => {
  let now = 5_000_000;
  const hub = await openHttpHub({ routes: ROUTES, now: () => now });
  const [token, other] = [await hub.token('viewer'), await hub.token('viewer', { name: 'other' })];
  const first = await signIn(hub, { token });
  const others = await signIn(hub, { token: other });
  now += 1;
  const later = await Promise.all(Array.from({ length: 20 }, () => signIn(hub, { token })));
  expect(await statusOf(hub, ROUTES[0]!, first.headers)).toBe(401);
  for (const { headers } of [others, ...later]) expect(await statusOf(hub, ROUTES[0]!, headers)).toBe(200);
  const more = await Promise.all(Array.from({ length: 100 }, () => signIn(hub, { token })));
  const refused = more.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(100 + 21 - 60);
  expect(refused[0]?.body).toMatchObject({ error: { code: 'TOO_MANY_REQUESTS' } });
  expect((await signIn(hub, { token: other })).status).toBe(200);
  const valid = (await hub.tokens.list()).filter(
    ({ kind, revokedAt }) => kind === 'sign-in' && revokedAt === undefined,
  );
  expect(valid).toHaveLength(22);
  now += 3_600_001;
  expect((await signIn(hub, { token })).status).toBe(200);
});

test('the streams of one principal are limited below those of the hub, however fast they are opened', async () => {
  const stream: Route = {
    method: 'GET',
    path: '/api/v1/stream',
    roles: EVERYBODY,
    handler: async () => ({
      events: ({ closed }) => new Promise<void>((resolve) => closed.addEventListener('abort', () => resolve())),
    }),
  };
  const hub = await openHttpHub({ routes: [...ROUTES, stream] });
  const [greedy, other] = [await hub.token('viewer'), await hub.token('viewer', { name: 'other' })];
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  // A response that is garbage-collected closes its stream.
  const held: Response[] = [];
  const open = async (token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${hub.url}/api/v1/stream`, { headers, signal: stop.signal });
    held.push(response);
    return response.status;
  };
  const statuses = await Promise.all(Array.from({ length: 300 }, () => open(greedy)));
  expect(statuses.filter((status) => status === 200)).toHaveLength(256);
  expect(statuses.filter((status) => status === 429)).toHaveLength(44);
  expect(await open(other)).toBe(200);
  expect(held).toHaveLength(301);
  expect(await statusOf(hub, ROUTES[0]!, { authorization: `Bearer ${greedy}` })).toBe(200);
});

test('a sign-in with a token acts as that token, and ends at sign-out or when either is revoked', async () => {
  const hub = await openHttpHub({ routes: ROUTES });
  const { token, row } = await hub.tokens.create({ name: 'mine', role: 'approver', attended: false });
  const [one, two, three] = [await signIn(hub, { token }), await signIn(hub, { token }), await signIn(hub, { token })];
  expect(one.body).toMatchObject({ principal: { id: `token:${row.id}`, role: 'approver', kind: 'token' } });
  expect(await statusOf(hub, ROUTES[3]!, one.headers)).toBe(200);
  expect(await statusOf(hub, ROUTES[2]!, one.headers)).toBe(403);
  // One browser's key does not match another's cookie.
  expect(await statusOf(hub, ROUTES[3]!, { ...one.headers, cookie: two.headers.cookie })).toBe(401);

  const out = await fetch(`${hub.url}/api/v1/sign-in`, { method: 'DELETE', headers: one.headers });
  expect(out.status).toBe(204);
  expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
  expect(await statusOf(hub, ROUTES[3]!, one.headers)).toBe(401);
  expect(await statusOf(hub, ROUTES[3]!, two.headers)).toBe(200);
  const [signInRow] = (await hub.tokens.list()).filter(
    ({ kind, revokedAt }) => kind === 'sign-in' && revokedAt === undefined,
  );
  await hub.tokens.revoke(signInRow!.id);
  await hub.tokens.revoke(row.id);
  expect(await statusOf(hub, ROUTES[3]!, two.headers)).toBe(401);
  expect(await statusOf(hub, ROUTES[3]!, three.headers)).toBe(401);
  expect((await signIn(hub, { token })).status).toBe(401);
});

test('the cookie is https-only under the public name, and bound to the port under the local one', async () => {
  const hub = await openHttpHub({ settings: { behindProxy: 'https://hub.example.org' } });
  const cookieUnder = async (host: string): Promise<string> => {
    const body = JSON.stringify({ code: hub.codes.issue() });
    const lines = [
      'POST /api/v1/sign-in HTTP/1.1',
      `Host: ${host}`,
      'Connection: close',
      'Content-Type: application/json',
    ];
    const { head } = await sendRaw(hub.url, request([...lines, `Content-Length: ${body.length}`], body));
    return /set-cookie: (.*)/i.exec(head)?.[1]?.replace(/=[\w-]{43};/, '=…;') ?? head;
  };
  expect(await cookieUnder('hub.example.org')).toBe(
    '__Host-claude-code-hub=…; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict; Secure',
  );
  const { host, port } = new URL(hub.url);
  expect(await cookieUnder(host)).toBe(`claude-code-hub-${port}=…; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict`);
});

test('a stream ends when its credential is revoked', async () => {
  const events: Route = {
    method: 'GET',
    path: '/api/v1/events',
    roles: EVERYBODY,
    handler: async () => ({
      events: async (stream) => {
        await stream.send(frameOf({ id: '1', event: 'hello', data: { a: 1 } }));
        await new Promise((resolve) => stream.closed.addEventListener('abort', resolve));
      },
    }),
  };
  const hub = await openHttpHub({ routes: [events] });
  const token = await hub.token('viewer');
  const response = await fetch(`${hub.url}/api/v1/events`, { headers: { authorization: `Bearer ${token}` } });
  const reader = response.body!.getReader();
  expect(Buffer.from((await reader.read()).value).toString()).toBe('id: 1\nevent: hello\ndata: {"a":1}\n\n');
  await hub.tokens.revoke('viewer');
  await expect(reader.read()).rejects.toThrow();
}, 20_000);

test('repeated failures are slowed down and audited, but valid credentials from the same address are not', async () => {
  const delays: number[] = [];
  const reports: unknown[] = [];
  let now = 0;
  const attempts = new FailedAttempts({
    now: () => now,
    wait: async (ms) => void delays.push(ms),
    report: (failure) => reports.push(failure),
  });
  for (let count = 0; count < 14; count++) expect(await attempts.failed('10.0.0.1', 'credential')).toBe(true);
  expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  expect(reports).toEqual([{ from: '10.0.0.1', reason: 'credential', count: 1 }]);
  now = 10_000;
  await attempts.failed('10.0.0.1', 'credential');
  expect(reports[1]).toEqual({ from: '10.0.0.1', reason: 'credential', count: 14 });
  now = 100_000;
  delays.length = 0;
  await attempts.failed('10.0.0.1', 'credential');
  expect(delays).toEqual([]);

  const hub = await openHttpHub({ routes: ROUTES });
  const token = await hub.token();
  const wrong = { authorization: `Bearer ccmcp_${'w'.repeat(43)}` };
  const failures = Array.from({ length: 8 }, () => statusOf(hub, ROUTES[0]!, wrong));
  const started = performance.now();
  expect(await statusOf(hub, ROUTES[0]!, { authorization: `Bearer ${token}` })).toBe(200);
  expect(performance.now() - started).toBeLessThan(1_000);
  expect(new Set(await Promise.all(failures))).toEqual(new Set([401]));
  expect(performance.now() - started).toBeGreaterThan(350);
  expect(hub.records).toEqual([
    {
      kind: 'server',
      who: 'policy',
      what: 'authentication',
      outcome: 'refused',
      details: { from: expect.stringContaining('127.0.0.1'), reason: 'credential', count: 1 },
    },
  ]);
});

test('no secret is in the store, the log, the audit records or an error', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'ccm-secrets-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = path.join(directory, 'hub.db');
  const store = await openSqliteStore({ file, warn: () => undefined });
  onTestFinished(() => store.close());
  const failing: Route = {
    method: 'GET',
    path: '/api/v1/broken',
    roles: EVERYBODY,
    handler: async () => {
      throw new Error('the password is hunter2');
    },
  };
  const hub = await openHttpHub({ store, routes: [failing, ...ROUTES] });
  const token = await hub.token('admin');
  const code = hub.codes.issue();
  const { headers, body } = await signIn(hub, { code });
  const broken = await fetch(`${hub.url}/api/v1/broken`, { headers });
  expect([broken.status, await broken.text()]).toEqual([500, expect.not.stringContaining('hunter2')]);
  await statusOf(hub, ROUTES[0]!, { authorization: `Bearer ${token}x` });
  const cookie = headers.cookie.split('=')[1]!;
  const stored = await Promise.all([file, `${file}-wal`].map((one) => readFile(one, 'latin1').catch(() => '')));
  const kept = [
    ...stored,
    JSON.stringify(hub.records),
    hub.lines.filter((line) => !line.includes('hunter2')).join('\n'),
  ].join('\n');
  for (const secret of [token, token.slice(6), code, cookie, body['key'] as string]) expect(kept).not.toContain(secret);
});

interface SignedIn {
  status: number;
  cookie: string;
  body: Record<string, unknown>;
  headers: { cookie: string; 'x-claude-code-key': string };
}

async function signIn(hub: HttpHub, body: SignInBody): Promise<SignedIn> {
  const response = await fetch(`${hub.url}/api/v1/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const cookie = response.headers.get('set-cookie') ?? '';
  const answer = (await response.json()) as Record<string, unknown>;
  const key = String(answer['key']);
  return {
    status: response.status,
    cookie,
    body: answer,
    headers: { cookie: cookie.split(';')[0]!, 'x-claude-code-key': key },
  };
}

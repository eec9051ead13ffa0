import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { SignJWT, UnsecuredJWT } from 'jose';
import { expect, test } from 'vitest';
import { ROLES } from '../../src/schema/enums.ts';
import type { Route } from '../../src/hub/http/route.ts';
import { OauthTokens } from '../../src/hub/auth/oauth.ts';
import { openHttpHub, type HttpHub } from './http-hub.ts';
import { startIssuer, type Issuer } from './oauth-issuer.ts';

const AUDIENCE = 'https://hub.example.org/mcp';

const whoami: Route = {
  method: 'GET',
  path: '/api/v1/me',
  roles: ROLES,
  handler: async ({ principal }) => ({ status: 200, json: principal }),
};

async function open(now?: () => number): Promise<{ issuer: Issuer; hub: HttpHub }> {
  const issuer = await startIssuer();
  const accessTokens = new OauthTokens({
    issuer: issuer.url,
    audience: AUDIENCE,
    log: () => undefined,
    ...(now && { now }),
  });
  const hub = await openHttpHub({
    routes: [whoami],
    accessTokens,
    slowDown: () => Promise.resolve(),
    ...(now && { now }),
  });
  return { issuer, hub };
}

async function me(hub: HttpHub, token: string): Promise<[number, unknown, string | null]> {
  const response = await fetch(`${hub.url}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  return [response.status, await response.json(), response.headers.get('www-authenticate')];
}

test('an access token has the role of its highest scope', async () => {
  const { issuer, hub } = await open();
  for (const [scope, role] of [
    ['viewer', 'viewer'],
    ['caller', 'caller'],
    ['approver viewer', 'approver'],
    ['caller admin', 'admin'],
  ] as const) {
    const [status, principal] = await me(hub, await issuer.token(AUDIENCE, scope));
    expect(status).toBe(200);
    const id = `oauth:${issuer.url}|robot`;
    expect(principal).toMatchObject({ id, name: id, kind: 'oauth', role, attended: false });
  }
});

test('an access token for another audience, without a role, expired, forged or unsigned is refused', async () => {
  let now = Date.now();
  const { issuer, hub } = await open(() => now);
  const refused = expect.stringContaining('error="invalid_token"');
  expect(await me(hub, await issuer.token('https://other.example/', 'admin'))).toEqual([
    401,
    expect.anything(),
    refused,
  ]);
  expect(await me(hub, await issuer.token(AUDIENCE, 'other'))).toEqual([
    403,
    expect.anything(),
    expect.stringContaining('insufficient_scope'),
  ]);

  const short = await issuer.token(AUDIENCE, 'admin', 60);
  expect((await me(hub, short))[0]).toBe(200);
  now += 95_000;
  expect(await me(hub, short)).toEqual([401, expect.anything(), refused]);
  now = Date.now();

  const claims = { scope: 'admin', sub: 'robot' };
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const forged = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', kid: randomUUID() })
    .setIssuer(issuer.url)
    .setAudience(AUDIENCE)
    .setExpirationTime('1h')
    .sign(privateKey);
  expect(await me(hub, forged)).toEqual([401, expect.anything(), refused]);
  const unsigned = new UnsecuredJWT(claims)
    .setIssuer(issuer.url)
    .setAudience(AUDIENCE)
    .setExpirationTime('1h')
    .encode();
  expect(await me(hub, unsigned)).toEqual([401, expect.anything(), refused]);
  const symmetric = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer(issuer.url)
    .setAudience(AUDIENCE)
    .setExpirationTime('1h')
    .sign(Buffer.from('a'.repeat(32)));
  expect((await me(hub, symmetric))[0]).toBe(401);
  const good = await issuer.token(AUDIENCE, 'admin');
  const [head, payload, signature] = good.split('.') as [string, string, string];
  const changed = Buffer.from(
    JSON.stringify({ ...JSON.parse(Buffer.from(payload, 'base64url').toString()), scope: 'admin' }),
  ).toString('base64url');
  expect((await me(hub, `${head}.${changed}x.${signature}`))[0]).toBe(401);
  expect((await me(hub, good))[0]).toBe(200);
});

test('a client without a credential is told where to get one', async () => {
  const { issuer, hub } = await open();
  const challenged = await fetch(`${hub.url}/mcp`, { method: 'POST' });
  expect(challenged.status).toBe(401);
  const [, where] = /resource_metadata="([^"]+)"/.exec(challenged.headers.get('www-authenticate') ?? '') ?? [];
  expect(where).toBe(`${hub.url}/.well-known/oauth-protected-resource/mcp`);
  const metadata = await (await fetch(where!)).json();
  expect(metadata).toMatchObject({
    resource: `${hub.url}/mcp`,
    authorization_servers: [issuer.url],
    scopes_supported: ['viewer', 'caller', 'approver', 'admin'],
  });
  const atRoot = await (await fetch(`${hub.url}/.well-known/oauth-protected-resource`)).json();
  expect(atRoot).toMatchObject({ resource: hub.url, authorization_servers: [issuer.url] });
});

test('access recovers soon after an issuer outage, and rotated keys are found', async () => {
  let now = Date.now();
  const { issuer, hub } = await open(() => now);
  const token = await issuer.token(AUDIENCE, 'caller');
  issuer.setDown(true);
  expect((await me(hub, token))[0]).toBe(503);
  const requestsBefore = issuer.requests.length;
  expect((await me(hub, token))[0]).toBe(503);
  expect(issuer.requests.length).toBe(requestsBefore);
  // The hub's own tokens need no issuer.
  expect((await me(hub, await hub.token('viewer')))[0]).toBe(200);
  issuer.setDown(false);
  now += 6_000;
  expect((await me(hub, token))[0]).toBe(200);
  issuer.rotateKeys();
  const signedWithNewKey = await issuer.token(AUDIENCE, 'caller');
  await expect.poll(async () => (await me(hub, signedWithNewKey))[0], { timeout: 15_000, interval: 500 }).toBe(200);
}, 30_000);

test('a stream ends when its access token expires', async () => {
  const events: Route = {
    method: 'GET',
    path: '/api/v1/events',
    roles: ROLES,
    handler: async () => ({
      events: async ({ closed }) => {
        await new Promise((resolve) => closed.addEventListener('abort', resolve));
      },
    }),
  };
  let now = Date.now();
  const issuer = await startIssuer();
  const accessTokens = new OauthTokens({ issuer: issuer.url, audience: AUDIENCE, log: () => undefined });
  const hub = await openHttpHub({ routes: [events], accessTokens, now: () => now });
  const authorization = `Bearer ${await issuer.token(AUDIENCE, 'viewer')}`;
  const response = await fetch(`${hub.url}/api/v1/events`, { headers: { authorization } });
  const reader = response.body!.getReader();
  const read = reader.read();
  now += 3_600_000;
  await expect(read).rejects.toThrow();
}, 20_000);

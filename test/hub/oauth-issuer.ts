/** A real OpenID Connect provider on loopback that issues JWT access tokens. */

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { onTestFinished } from 'vitest';

export interface Issuer {
  readonly url: string;
  /** An access token with these scopes, from the client credentials grant. */
  token(audience: string, scope: string, ttlSeconds?: number): Promise<string>;
  /** Signs with a new key from now on. */
  rotateKeys(): void;
  setDown(down: boolean): void;
  readonly requests: string[];
}

const SECRET = 'a-secret-of-the-test-client';

export async function startIssuer(): Promise<Issuer> {
  const requests: string[] = [];
  let listener: RequestListener | undefined;
  let down = false;
  let ttl = 600;
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    if (down || !listener) response.writeHead(503).end();
    else listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const start = (key: SigningKey): void => {
    const provider = new Provider(url, {
      clients: [
        {
          client_id: 'robot',
          client_secret: SECRET,
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
        },
      ],
      scopes: ['viewer', 'caller', 'approver', 'admin', 'other'],
      jwks: { keys: [key] },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_ctx, resource) => ({
            scope: 'viewer caller approver admin other',
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: ttl,
            jwt: { sign: { alg: 'RS256' } },
          }),
        },
      },
    });
    const callback = provider.callback();
    listener = (request, response) => void callback(request, response);
  };
  start((firstKey ??= newKey()));
  return {
    url,
    requests,
    async token(audience, scope, ttlSeconds = 600) {
      ttl = ttlSeconds;
      const response = await fetch(`${url}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`robot:${SECRET}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience, scope }),
      });
      const answer = (await response.json()) as { access_token?: string };
      if (answer.access_token === undefined) throw new Error(JSON.stringify(answer));
      return answer.access_token;
    },
    rotateKeys: () => start(newKey()),
    setDown: (value) => (down = value),
  };
}

type SigningKey = Record<string, unknown>;

/** Shared by all issuers: generating a key takes a quarter of a second. */
let firstKey: SigningKey | undefined;

function newKey(): SigningKey {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'RS256', use: 'sig' };
}

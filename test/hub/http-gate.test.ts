import { expect, test } from 'vitest';
import { ownNames } from '../../src/hub/http/gate.ts';
import { eventually } from '../harness/eventually.ts';
import { openHttpHub } from './http-hub.ts';
import { request, sendRaw } from './raw-http.ts';

const hostOf = (url: string): string => new URL(url).host;

test('only the hub’s own host names are answered, which defeats DNS rebinding', async () => {
  const { url } = await openHttpHub();
  const { port } = new URL(url);
  const status = async (host: string): Promise<number> =>
    (await sendRaw(url, request(['GET /healthz HTTP/1.1', `Host: ${host}`, 'Connection: close']))).status;
  for (const name of ['127.0.0.1', 'localhost', 'LocalHost', '[::1]'])
    expect(await status(`${name}:${port}`)).toBe(200);
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    '127.0.0.1',
    '127.0.0.1:1',
    `0.0.0.0:${port}`,
    `localhost.evil:${port}`,
    '',
  ])
    expect([host, await status(host)]).toEqual([host, 421]);
});

test('behind a proxy, the hub answers only under its public name and on loopback', () => {
  const proxied = ownNames({
    host: '127.0.0.1',
    port: 7433,
    isLoopback: true,
    certificate: undefined,
    publicOrigin: 'https://hub.example.org',
  });
  expect(proxied.isOwnHost('hub.example.org')).toBe(true);
  expect(proxied.isOwnHost('hub.example.org:7433')).toBe(false);
  expect(proxied.originOf('hub.example.org')).toBe('https://hub.example.org');
  expect(proxied.originOf('127.0.0.1:7433')).toBe('http://127.0.0.1:7433');
  const open = ownNames({
    host: '0.0.0.0',
    port: 7433,
    isLoopback: false,
    certificate: undefined,
    publicOrigin: 'https://hub.example.org',
  });
  expect(open.isOwnHost('127.0.0.1:7433')).toBe(true);
  expect(open.isOwnHost('192.0.2.7:7433')).toBe(false);
});

test.each([
  ['a page from another site', { origin: 'https://evil.example' }],
  ['a page on another port of this host', { origin: 'http://127.0.0.1:1' }],
  ['a page under another name of this host', { origin: 'http://localhost:PORT' }],
  ['a page in a sandboxed frame', { origin: 'null' }],
  [
    'a script tag on another site',
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' },
  ],
  [
    'a frame on another port',
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  ],
])('%s is refused everywhere, even with a valid token', async (_, headers) => {
  const { url, token } = await openHttpHub();
  const authorization = `Bearer ${await token('admin')}`;
  const own = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.replace('PORT', new URL(url).port)]),
  );
  for (const path of ['/healthz', '/', '/mcp', '/api/v1/sign-in', '/api/v1/sessions']) {
    const lines = Object.entries({ ...own, authorization }).map(([name, value]) => `${name}: ${value}`);
    const answer = await sendRaw(
      url,
      request([`GET ${path} HTTP/1.1`, `Host: ${hostOf(url)}`, 'Connection: close', ...lines]),
    );
    expect([path, answer.status]).toEqual([path, 403]);
    expect(answer.head.toLowerCase()).not.toContain('access-control');
  }
});

test('a link to the dashboard from another site works, a preflight does not', async () => {
  const { url } = await openHttpHub();
  const follow = ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'];
  const page = await sendRaw(url, request(['GET / HTTP/1.1', `Host: ${hostOf(url)}`, 'Connection: close', ...follow]));
  expect(page.status).toBe(503);
  expect(page.body).toContain('dashboard');
  const preflight = await sendRaw(
    url,
    request(['OPTIONS /api/v1/sign-in HTTP/1.1', `Host: ${hostOf(url)}`, 'Connection: close', `Origin: ${url}`]),
  );
  expect(preflight.status).toBe(405);
  expect(preflight.head.toLowerCase()).not.toContain('access-control');
});

const SMUGGLING: [string, (host: string) => string][] = [
  [
    'a length and chunks',
    (host) =>
      request(
        ['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Length: 5', 'Transfer-Encoding: chunked'],
        '0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n',
      ),
  ],
  [
    'two lengths',
    (host) => request(['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Length: 5', 'Content-Length: 6'], '12345'),
  ],
  [
    'two equal lengths',
    (host) => request(['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Length: 5', 'Content-Length: 5'], '12345'),
  ],
  [
    'a disguised transfer encoding',
    (host) => request(['POST /mcp HTTP/1.1', `Host: ${host}`, 'Transfer-Encoding: xchunked'], '0\r\n\r\n'),
  ],
  [
    'two encodings',
    (host) => request(['POST /mcp HTTP/1.1', `Host: ${host}`, 'Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'),
  ],
  [
    'a space before the colon',
    (host) => request(['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Length : 5'], '12345'),
  ],
  ['a folded header', (host) => request(['GET /healthz HTTP/1.1', `Host: ${host}`, 'X-A: b', ' Content-Length: 5'])],
  ['a bare line feed', (host) => `GET /healthz HTTP/1.1\nHost: ${host}\n\n`],
  ['a negative length', (host) => request(['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Length: -1'])],
  ['a length with a sign', (host) => request(['POST /mcp HTTP/1.1', `Host: ${host}`, 'Content-Length: +5'], '12345')],
  ['two hosts', (host) => request(['GET /healthz HTTP/1.1', `Host: ${host}`, 'Host: evil.example'])],
  [
    'two credentials',
    (host) => request(['GET /mcp HTTP/1.1', `Host: ${host}`, 'Authorization: Bearer a', 'Authorization: Bearer b']),
  ],
  ['an absolute target', (host) => request([`GET http://evil.example/healthz HTTP/1.1`, `Host: ${host}`])],
  ['a path with dots', (host) => request(['GET /a/../healthz HTTP/1.1', `Host: ${host}`])],
  ['an encoded slash', (host) => request(['GET /..%2f..%2fetc/passwd HTTP/1.1', `Host: ${host}`])],
  ['a backslash', (host) => request(['GET /..\\..\\etc HTTP/1.1', `Host: ${host}`])],
  ['a NUL', (host) => request(['GET /a%00.js HTTP/1.1', `Host: ${host}`])],
  [
    'a compressed body',
    (host) =>
      request(['POST /api/v1/sign-in HTTP/1.1', `Host: ${host}`, 'Content-Encoding: gzip', 'Content-Length: 2'], '{}'),
  ],
  ['a tunnel', (host) => request(['CONNECT evil.example:443 HTTP/1.1', `Host: ${host}`])],
  [
    'a token in the URL',
    (host) => request([`GET /api/v1/sessions?token=ccmcp_${'a'.repeat(43)} HTTP/1.1`, `Host: ${host}`]),
  ],
  ['an endless header', (host) => request(['GET /healthz HTTP/1.1', `Host: ${host}`, `X-A: ${'a'.repeat(40_000)}`])],
];

test.each(SMUGGLING)('%s is refused and the connection closed', async (_, bytes) => {
  const { url, lines } = await openHttpHub({
    limits: { requestTimeout: 2_000, headersTimeout: 1_000, connectionsCheckingInterval: 100 },
  });
  const answer = await sendRaw(url, bytes(hostOf(url)));
  expect([0, 400, 404, 415, 431, 501]).toContain(answer.status);
  // One refusal, and no second response.
  expect(answer.body).not.toContain('HTTP/1.1');
  expect(lines).toEqual([]);
});

test('a body is accepted only after the credential was checked', async () => {
  const { url, token } = await openHttpHub();
  const head = (credential: string): string[] => [
    'POST /api/v1/sign-in/none HTTP/1.1',
    `Host: ${hostOf(url)}`,
    'Content-Type: application/json',
    'Content-Length: 100',
    'Expect: 100-continue',
    ...(credential === '' ? [] : [`Authorization: Bearer ${credential}`]),
  ];
  const answer = await sendRaw(url, request(head('')));
  expect(answer.status).toBe(401);
  expect(answer.head).not.toContain('100 Continue');
  expect((await sendRaw(url, request(head(await token())))).status).toBe(404);
});

test('an oversized body is refused before it is sent, or while it arrives if it has no length', async () => {
  const { url, token } = await openHttpHub();
  const credential = `Authorization: Bearer ${await token()}`;
  const head = ['POST /mcp HTTP/1.1', `Host: ${hostOf(url)}`, credential, 'Content-Type: application/json'];
  const announced = await sendRaw(url, request([...head, `Content-Length: ${20 * 1024 * 1024}`]));
  expect(announced).toMatchObject({ status: 413, head: expect.stringMatching(/connection: close/i) });
  const megabyte = `${(1024 * 1024).toString(16)}\r\n${' '.repeat(1024 * 1024)}\r\n`;
  const chunked = await sendRaw(url, request([...head, 'Transfer-Encoding: chunked']), {
    later: (socket) => {
      for (let sent = 0; sent < 20; sent++) socket.write(megabyte);
    },
  });
  expect([0, 413]).toContain(chunked.status);
  const signIn = ['POST /api/v1/sign-in HTTP/1.1', `Host: ${hostOf(url)}`, 'Content-Type: application/json'];
  expect(await sendRaw(url, request([...signIn, 'Content-Length: 5000']))).toMatchObject({ status: 413 });
});

test('a slow client is disconnected, and does not hold up others', async () => {
  const { url, token } = await openHttpHub({
    limits: { requestTimeout: 4_000, headersTimeout: 3_000, connectionsCheckingInterval: 100 },
  });
  const credential = `Authorization: Bearer ${await token()}`;
  let trickling = 0;
  let disconnected = 0;
  const trickle = async (bytes: string): Promise<number> => {
    const answer = await sendRaw(url, bytes, {
      later: (socket) => {
        trickling++;
        const timer = setInterval(() => socket.write('x'), 100);
        socket.on('close', () => clearInterval(timer));
      },
    });
    disconnected++;
    return answer.status;
  };
  const slow = [
    trickle(`GET /healthz HTTP/1.1\r\nHost: ${hostOf(url)}\r\nX-`),
    trickle(
      request([
        'POST /mcp HTTP/1.1',
        `Host: ${hostOf(url)}`,
        credential,
        'Content-Type: application/json',
        'Content-Length: 100000',
      ]),
    ),
  ];
  await eventually(() => trickling === slow.length, { what: 'both slow clients are connected' });
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(disconnected).toBe(0);
  for (const status of await Promise.all(slow)) expect([0, 408]).toContain(status);
});

test('a body must be UTF-8 JSON of limited depth, without keys that JavaScript treats specially', async () => {
  const { url } = await openHttpHub();
  const post = async (body: string | Buffer, type = 'application/json'): Promise<[number, string]> => {
    const response = await fetch(`${url}/api/v1/sign-in`, { method: 'POST', body, headers: { 'content-type': type } });
    return [response.status, await response.text()];
  };
  expect(await post('{"code":')).toEqual([400, expect.stringContaining('not JSON')]);
  expect(await post(Buffer.from([0x22, 0xff, 0x22]))).toEqual([400, expect.stringContaining('UTF-8')]);
  expect(await post('['.repeat(2_000))).toEqual([400, expect.stringContaining('100 levels')]);
  expect(await post('{"code":"x","__proto__":{"admin":true}}')).toEqual([400, expect.stringContaining('__proto__')]);
  expect(await post('code=x', 'application/x-www-form-urlencoded')).toEqual([415, expect.any(String)]);
  expect(await post('{"code":"x"}', 'text/plain')).toEqual([415, expect.any(String)]);
});

test('without TLS the hub listens on loopback only', async () => {
  const at = (host: string, more = {}): Promise<unknown> =>
    openHttpHub({ settings: { listen: { host, port: 0 }, ...more } });
  await expect(at('0.0.0.0')).rejects.toThrow(
    '--listen 0.0.0.0 is not loopback: give --tls-cert and --tls-key, or --behind-proxy',
  );
  await expect(at('192.0.2.1')).rejects.toThrow('not loopback');
  await expect(at('127.0.0.1', { tlsCert: '/tmp/cert.pem' })).rejects.toThrow('only valid together');
  await expect(at('0.0.0.0', { tlsCert: '/nowhere/cert.pem', tlsKey: '/nowhere/key.pem' })).rejects.toThrow(
    '--tls-cert cannot be read',
  );
  await at('0.0.0.0', { behindProxy: 'https://hub.example.org' });
});

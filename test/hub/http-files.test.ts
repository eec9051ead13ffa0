import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openHttpHub } from './http-hub.ts';

test('the dashboard, and nothing else, is served to anyone, with a strict content policy', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'ccm-files-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const dashboardDir = path.join(root, 'dashboard');
  await mkdir(path.join(dashboardDir, 'assets'), { recursive: true });
  await writeFile(path.join(dashboardDir, 'index.html'), '<!doctype html><title>Inbox</title>');
  await writeFile(path.join(dashboardDir, 'assets', 'app-1a2b3c4d.js'), 'export {};');
  await writeFile(path.join(root, 'secret.js'), 'no');
  await symlink(path.join(root, 'secret.js'), path.join(dashboardDir, 'linked.js'));
  const { url } = await openHttpHub({ dashboardDir });
  const get = (where: string, headers = {}): Promise<Response> => fetch(url + where, { headers });

  for (const where of ['/', '/sessions/some-id', '/index.html']) {
    const page = await get(where);
    expect([where, page.status, page.headers.get('content-type')]).toEqual([where, 200, 'text/html; charset=utf-8']);
    expect(await page.text()).toContain('Inbox');
    expect(page.headers.get('cache-control')).toBe('no-cache');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(page.headers.get('strict-transport-security')).toBeNull();
  }
  const script = await get('/assets/app-1a2b3c4d.js');
  expect([await script.text(), script.headers.get('content-type')]).toEqual([
    'export {};',
    'text/javascript; charset=utf-8',
  ]);
  expect(script.headers.get('cache-control')).toContain('immutable');
  const again = await get('/assets/app-1a2b3c4d.js', { 'if-none-match': script.headers.get('etag')! });
  expect(again.status).toBe(304);
  // `fetch` asks for gzip and unpacks it.
  expect(script.headers.get('content-encoding')).toBe('gzip');
  for (const encoding of ['identity', 'br', 'gzip;q=0']) {
    const plain = await get('/assets/app-1a2b3c4d.js', { 'accept-encoding': encoding });
    expect([encoding, plain.headers.get('content-encoding'), await plain.text()]).toEqual([
      encoding,
      null,
      'export {};',
    ]);
    expect(plain.headers.get('vary')).toBe('accept-encoding');
    expect(plain.headers.get('etag')).not.toBe(script.headers.get('etag'));
  }
  for (const where of ['/secret.js', '/linked.js', '/assets/none.js', '/%2e%2e/secret.js', '/assets//app-1a2b3c4d.js'])
    expect([where, [400, 404].includes((await get(where)).status)]).toEqual([where, true]);
  expect((await fetch(`${url}/index.html`, { method: 'POST' })).status).toBe(401);
});

test('a hub without a dashboard says so', async () => {
  const { url } = await openHttpHub({ dashboardDir: '/nowhere/dashboard' });
  const page = await fetch(url);
  expect([page.status, await page.text()]).toEqual([503, expect.stringContaining('Dashboard not found')]);
});

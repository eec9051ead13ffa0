import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openHttpHub } from './http-hub.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

test.runIf(hasOpenssl)(
  'with a certificate the hub speaks TLS, and answers only under the certificate’s names',
  async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'ccm-tls-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const [tlsKey, tlsCert] = [path.join(directory, 'key.pem'), path.join(directory, 'cert.pem')];
    const names = 'subjectAltName=DNS:hub.test,IP:127.0.0.1';
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    execFileSync('openssl', [...args, '-subj', '/CN=hub.test', '-addext', names, '-keyout', tlsKey, '-out', tlsCert], {
      stdio: 'ignore',
    });
    const hub = await openHttpHub({ settings: { listen: { host: '0.0.0.0', port: 0 }, tlsCert, tlsKey } });
    expect(hub.url).toMatch(/^https:\/\/localhost:\d+$/);
    const { port } = new URL(hub.url);
    const get = (
      host: string,
      where: string,
      options: https.RequestOptions = {},
    ): Promise<{ status?: number; headers: object }> =>
      new Promise((resolve, reject) => {
        const request = https.get(
          {
            host: '127.0.0.1',
            port,
            path: where,
            ca: readFileSync(tlsCert),
            servername: 'hub.test',
            headers: { host },
            agent: false,
            ...options,
          },
          (response) => {
            response.resume();
            resolve({ status: response.statusCode!, headers: response.headers });
          },
        );
        request.on('error', reject);
      });
    expect(await get(`hub.test:${port}`, '/healthz')).toMatchObject({ status: 200 });
    expect(await get(`127.0.0.1:${port}`, '/healthz')).toMatchObject({ status: 200 });
    for (const host of [`evil.example:${port}`, 'hub.test', 'hub.test:1', `hub.test.evil:${port}`])
      expect([host, (await get(host, '/healthz')).status]).toEqual([host, 421]);
    const page = await get(`hub.test:${port}`, '/');
    expect(page.headers).toMatchObject({ 'strict-transport-security': 'max-age=31536000' });
    await expect(get(`hub.test:${port}`, '/healthz', { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })).rejects.toThrow();
  },
);

/** What `doctor` reports about this user's hub, with the built hub. */

import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { checkAnswer, checkHub } from '../../src/cli/doctor/check-hub.ts';
import type { Finding } from '../../src/cli/doctor/check-setup.ts';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { isAlive } from '../../src/transcripts/session-lock.ts';
import { eventually } from '../harness/eventually.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { runCommand } from './run-command.ts';

vi.setConfig({ testTimeout: 60_000 });

let place: IsolatedHome;
let stateDir: string;
beforeEach(async () => {
  place = await createHome();
  stateDir = path.join(place.stateDir, 'claude-code-mcp');
});
afterEach(() => place.remove());

async function findings({ argv = [], later = 0 }: { argv?: string[]; later?: number } = {}): Promise<Finding[]> {
  const source = { argv: ['doctor', ...argv], env: place.env(), cwd: place.project, homedir: place.home };
  const found: Finding[] = [];
  for await (const one of checkHub({ ...source, platform: process.platform }, '0.0.0', () => Date.now() + later))
    found.push(one);
  return found;
}

async function startHub(...flags: string[]): Promise<{ pid: number; url: string }> {
  const started = await runCommand(['hub', 'start', '--listen', '127.0.0.1:0', ...flags], { env: place.env() });
  expect(started).toMatchObject({ code: 0 });
  const record = readHubRecord(stateDir)!;
  onTestFinished(async () => {
    if (isAlive(record.pid)) process.kill(record.pid, 'SIGTERM');
    await eventually(() => !isAlive(record.pid), { what: 'the hub has exited' });
  });
  return record;
}

test('reports a running hub, a clock that is off, files that others can read, and a hub that died', async () => {
  expect(await findings()).toEqual([
    { check: 'Hub', status: 'skipped', found: expect.stringContaining('not running') },
  ]);
  const { pid, url } = await startHub();
  expect(await findings()).toEqual([
    { check: 'Hub', status: 'ok', found: expect.stringContaining(`at ${url} (pid ${pid})`) },
  ]);
  expect(await findings({ later: 120_000 })).toMatchObject([
    { check: 'Hub over HTTP', status: 'problem', found: expect.stringMatching(/^its clock is 1[12]\d s off$/) },
  ]);

  if (process.platform !== 'win32') {
    const client = path.join(place.configDir, '.claude.json');
    const open = [...['hub.db', 'hub.json', 'hub.secret'].map((name) => path.join(stateDir, name)), client];
    await writeFile(
      client,
      JSON.stringify({ mcpServers: { x: { headers: { Authorization: `Bearer ccmcp_${'a'.repeat(43)}` } } } }),
    );
    for (const file of open) await chmod(file, 0o640);
    const found = (await findings()).filter(({ status }) => status === 'problem');
    expect(found.map(({ remedy }) => remedy).sort()).toEqual(
      open.map((file) => `Make it private: chmod 600 ${file}`).sort(),
    );
    for (const file of open) await chmod(file, 0o600);
    expect((await findings()).map(({ status }) => status)).toEqual(['ok']);
    // A client's file without a token is the client's own business.
    await writeFile(client, '{}');
    await chmod(client, 0o644);
    expect((await findings()).map(({ status }) => status)).toEqual(['ok']);
  }

  expect(await checkAnswer('http://127.0.0.1:1', Date.now())).toMatchObject([
    { status: 'problem', found: expect.stringMatching(/cannot be reached: .*ECONNREFUSED/) },
  ]);
  process.kill(pid, 'SIGKILL');
  await eventually(() => !isAlive(pid), { what: 'the hub has exited' });
  expect(await findings()).toMatchObject([
    { check: 'Hub', status: 'problem', remedy: expect.stringContaining('hub start') },
  ]);
});

test.runIf(spawnSync('openssl', ['version']).status === 0)(
  'reports an expiring, expired or invalid certificate, and a key that others can read',
  async () => {
    const [key, cert] = [path.join(place.home, 'key.pem'), path.join(place.home, 'cert.pem')];
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '20'];
    execFileSync(
      'openssl',
      [...args, '-subj', '/CN=hub.test', '-addext', 'subjectAltName=DNS:hub.test', '-keyout', key, '-out', cert],
      { stdio: 'ignore' },
    );
    await chmod(key, 0o600);
    const { url } = await startHub('--tls-cert', cert, '--tls-key', key);
    expect(url).toMatch(/^https:/);
    // Without the paths, the doctor checks the certificate the hub presents.
    expect((await findings()).map(({ check, status }) => [check, status])).toEqual([['Hub', 'ok']]);
    const known = { argv: ['--tls-cert', cert, '--tls-key', key] };
    expect((await findings(known)).map(({ check, status }) => [check, status])).toEqual([
      ['TLS certificate', 'ok'],
      ['Hub', 'ok'],
    ]);
    const inTenDays = 10 * 86_400_000;
    expect((await findings({ later: inTenDays })).find(({ check }) => check === 'TLS certificate')).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('expires on'),
    });
    expect((await findings({ ...known, later: 3 * inTenDays }))[0]).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('expired on'),
    });
    await chmod(key, 0o644);
    if (process.platform !== 'win32')
      expect((await findings(known))[0]).toMatchObject({
        status: 'problem',
        remedy: `Make it private: chmod 600 ${key}`,
      });
    await writeFile(cert, 'no certificate');
    expect((await findings(known)).find(({ check }) => check === 'TLS certificate')).toMatchObject({
      status: 'problem',
    });
  },
);

test('reports a setting that keeps a hub from starting', async () => {
  expect(await findings({ argv: ['--listen', 'nowhere'] })).toMatchObject([
    { check: 'Hub', status: 'problem', found: expect.stringContaining('--listen') },
  ]);
});

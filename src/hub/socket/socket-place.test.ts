import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makePrivateDirectory, socketPath, type SocketHost } from './socket-place.ts';

const host: SocketHost = { stateDir: '/home/me/state', temporaryDir: '/tmp', platform: 'linux', uid: 1000 };

it('the socket is next to the hub’s other files', () => {
  expect(socketPath(host)).toBe('/home/me/state/hub/hub.sock');
});

it('the socket path is short enough for every system, wherever the state directory is', () => {
  const deep = `/home/me/${'deep/'.repeat(30)}`;
  const elsewhere = socketPath({ ...host, stateDir: deep });
  expect(elsewhere).toMatch(/^\/tmp\/claude-code-mcp-1000-[0-9a-f]{16}\/hub\.sock$/);
  expect(socketPath({ ...host, stateDir: deep, temporaryDir: deep })).toBe(elsewhere);
  expect(socketPath({ ...host, stateDir: `${deep}x` })).not.toBe(elsewhere);
});

it('the socket is a pipe on Windows', () => {
  expect(socketPath({ ...host, platform: 'win32' })).toMatch(/^\\\\\.\\pipe\\claude-code-mcp-[0-9a-f]{16}$/);
});

it.skipIf(process.platform === 'win32')('the socket is in a directory only its user can enter', async () => {
  const root = mkdtempSync(path.join(tmpdir(), 'socket-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const own = { ...host, stateDir: root, uid: process.getuid!() };
  await makePrivateDirectory(socketPath(own), own);
  const directory = path.join(root, 'hub');
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  chmodSync(directory, 0o777);
  await makePrivateDirectory(socketPath(own), own);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  await expect(makePrivateDirectory(socketPath(own), { ...own, uid: own.uid + 1 })).rejects.toThrow('another user');
});

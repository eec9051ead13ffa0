/** One Postgres for a whole run, started by the first test that asks for it. Each test uses its own schema. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import type { Postgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Its response is the URL of a running Postgres, which it starts if necessary. */
    postgresStarter: string;
  }
}

/** Owned by vitest's main process: test files run in short-lived processes of their own. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let postgres: Promise<Postgres> | undefined;
  // The data is disposable, so speed matters more than durability.
  const flags = ['-c', 'fsync=off', '-c', 'max_connections=200'];
  const starter = createServer((_request, response) => {
    postgres ??= import('./postgres.ts').then(({ startPostgres }) => startPostgres(flags));
    postgres.then(
      ({ url }) => response.end(url),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => starter.listen(0, '127.0.0.1', resolve));
  project.provide('postgresStarter', `http://127.0.0.1:${(starter.address() as AddressInfo).port}`);
  return async () => {
    starter.closeAllConnections();
    starter.close();
    await (await postgres?.catch(() => undefined))?.remove();
  };
}

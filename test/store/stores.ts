/** The implementations the shared tests run against. Each call opens an empty store. */

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import type { HubRef, StoredLease } from '../../src/schema/store.ts';
import type { EventBounds, Store } from '../../src/store/contract.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';

export interface OpenOptions {
  readonly bounds?: EventBounds;
  readonly now?: () => number;
}

export function afterThisTest(cleanUp: () => Promise<unknown>): void {
  onTestFinished(async () => {
    await cleanUp();
  });
}

export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-store-'));
  afterThisTest(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

export const STORES: Readonly<Record<Store['kind'], (options?: OpenOptions) => Promise<Store>>> = {
  sqlite: async (options) => {
    const file = path.join(await temporaryDirectory(), 'hub.db');
    return closedAfterwards(await openSqliteStore({ file, warn: unexpectedWarning, ...options }));
  },
  postgres: async (options) => closedAfterwards(await openPostgresStore({ ...(await freshPostgres()), ...options })),
};

export const KINDS = Object.keys(STORES) as Store['kind'][];

export interface OpenedStore {
  readonly store: Store;
  readonly hub: HubRef;
}

/** An empty store with the lease of one hub. */
export async function openStore(kind: Store['kind'], options?: OpenOptions): Promise<OpenedStore> {
  const store = await STORES[kind](options);
  return { store, hub: ref(await store.acquireLease('hub-a', 15_000, {})) };
}

export function ref({ hub, fence }: StoredLease): HubRef {
  return { hub, fence };
}

/** The Postgres server of this test run. */
export async function sharedPostgres(): Promise<string> {
  const response = await fetch(inject('postgresStarter'));
  const answer = await response.text();
  if (!response.ok) throw new Error(answer);
  return answer;
}

/** The Postgres server of this test run, with a schema for this test alone. */
export async function freshPostgres(): Promise<{ url: string; schema: string }> {
  const url = await sharedPostgres();
  const schema = `test_${randomUUID().replaceAll('-', '')}`;
  afterThisTest(() => withPostgres(url, (client) => client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`)));
  return { url, schema };
}

export async function withPostgres<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export function closedAfterwards(store: Store): Store {
  afterThisTest(() => store.close());
  return store;
}

export function unexpectedWarning(line: string): never {
  throw new Error(`unexpected warning: ${line}`);
}

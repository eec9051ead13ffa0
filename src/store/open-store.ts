import path from 'node:path';
import type { EventBounds, Store } from './contract.ts';

export interface StoreOptions {
  /** `postgres://…`, or undefined for a file in the state directory. */
  readonly url: string | undefined;
  readonly stateDir: string;
  readonly warn: (line: string) => void;
  readonly bounds?: EventBounds;
}

/** Loads only what the requested store needs. */
export async function openStore({ url, stateDir, warn, bounds }: StoreOptions): Promise<Store> {
  if (url !== undefined) {
    const { openPostgresStore } = await import('./postgres/open.ts');
    return openPostgresStore({ url, warn, ...(bounds && { bounds }) });
  }
  const { openSqliteStore } = await import('./sqlite/open.ts');
  return openSqliteStore({ file: sqliteFile(stateDir), warn, ...(bounds && { bounds }) });
}

export function sqliteFile(stateDir: string): string {
  return path.join(stateDir, 'hub.db');
}

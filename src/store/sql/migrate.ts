import { DomainError } from '../../errors/errors.ts';
import type { SqlConnection } from './connection.ts';
import { FIRST } from './migrations/0001-first.ts';
import { REMOVALS } from './migrations/0002-removals.ts';
import { TRANSCRIPTS } from './migrations/0003-transcripts.ts';
import { RULES } from './migrations/0004-rules.ts';
import { PUSHES } from './migrations/0005-pushes.ts';
import { ARCHIVE } from './migrations/0006-archive.ts';

/** In order, the first is version 1. Never changed once released: mistakes are fixed by the next one. */
export const MIGRATIONS: readonly string[] = [FIRST, REMOVALS, TRANSCRIPTS, RULES, PUSHES, ARCHIVE];

/**
 * Migrates the tables to this program's version, inside the caller's transaction, which keeps others from doing the
 * same at once. A store of a newer version is left alone.
 */
export async function migrate(
  { query }: Pick<SqlConnection, 'query'>,
  run: (script: string) => Promise<void>,
  migrations: readonly string[] = MIGRATIONS,
): Promise<void> {
  await run('CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)');
  const [stored] = await query('SELECT MAX(version) AS version FROM store_version');
  const version = Number(stored?.['version'] ?? 0);
  if (version > migrations.length) {
    throw new DomainError(
      'UNAVAILABLE',
      `The store has version ${version}, this program knows versions up to ${migrations.length}. ` +
        'It was left untouched: start a newer claude-code-mcp, or use another store.',
    );
  }
  if (version === migrations.length) return;
  for (const migration of migrations.slice(version)) await run(migration);
  await query('DELETE FROM store_version');
  await query('INSERT INTO store_version (version) VALUES (?)', [migrations.length]);
}

import { DomainError, messageOf } from '../../errors/errors.ts';

/**
 * https://www.postgresql.org/docs/current/errcodes-appendix.html: lost, refused, out of room, shut down, read-only,
 * given up.
 */
const UNAVAILABLE = /^(08|28|3D|53|57P|25006|25P03|57014|58|42501)/;
/** Two transactions conflicted, or both created the same new row: the second attempt sees what the first did. */
const AGAIN = /^(40001|40P01|23505)$/;

export function isRetryable(error: unknown): boolean {
  return AGAIN.test(sqlState(error) ?? '');
}

/** Errors from Postgres or the connection to it. One without a SQLSTATE is a connection error. */
export function toDomainError(error: unknown): unknown {
  if (error instanceof DomainError) return error;
  const state = sqlState(error);
  if (state === '22021') {
    return new DomainError('INVALID_ARGUMENT', 'Text with a NUL character cannot be stored or searched for.', {
      cause: error,
    });
  }
  if (state !== undefined && !UNAVAILABLE.test(state)) return error;
  return new DomainError(
    'UNAVAILABLE',
    `Postgres is unavailable (${messageOf(error) || 'connection lost'}). Try again; anything unconfirmed may be resent.`,
    { cause: error },
  );
}

/** As opposed to a lost connection. */
export function isResponse(error: unknown): boolean {
  return sqlState(error) !== undefined;
}

function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error)) return undefined;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

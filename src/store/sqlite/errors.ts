import { DomainError, messageOf, ownFileProblem } from '../../errors/errors.ts';

/** https://www.sqlite.org/rescode.html */
const UNAVAILABLE: Readonly<Record<number, string>> = {
  3: 'is not accessible to this user',
  5: 'is locked by another process',
  6: 'is locked by another process',
  7: 'does not fit into memory',
  8: 'is not writable: the file, directory or file system is read-only',
  10: 'cannot be read or written: the disk reports an error',
  13: 'is full: no space left on the disk',
  14: 'cannot be opened',
};
const BUSY: ReadonlySet<number | undefined> = new Set([5, 6]);
const DAMAGED: ReadonlySet<number | undefined> = new Set([11, 26]);

export function isBusy(error: unknown): boolean {
  return BUSY.has(resultCode(error));
}

export function isDamaged(error: unknown): boolean {
  return DAMAGED.has(resultCode(error));
}

/** Errors the caller can act on; anything else is passed through. */
export function toDomainError(error: unknown, file: string): unknown {
  const code = resultCode(error);
  if (isDamaged(error)) {
    return unavailable(`The store ${file} is damaged. The next start moves it aside and creates a new one.`, error);
  }
  const problem = code === undefined ? undefined : UNAVAILABLE[code];
  return problem === undefined
    ? error
    : unavailable(`The store ${file} ${problem}. Nothing was stored; try again once this is fixed.`, error);
}

export function toFileError(error: unknown, file: string): DomainError {
  const why = messageOf(ownFileProblem(error) ?? error);
  return unavailable(`The store ${file} cannot be opened: ${why}`, error);
}

function unavailable(message: string, cause: unknown): DomainError {
  return new DomainError('UNAVAILABLE', message, { cause });
}

/** The extended codes of one family share the lowest byte. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, rawCode } = error as { errcode?: unknown; rawCode?: unknown };
  const code = errcode ?? rawCode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

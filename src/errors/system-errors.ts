import { DomainError } from './errors.ts';

/** What the machine lacks, whatever it was asked for. */
const SHORTAGES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full. Free some space there',
  EDQUOT: 'the disk quota is used up. Free some space there',
  EROFS: 'the file system is read-only. Make it writable, or choose another directory',
  EMFILE: 'too many files are open. Raise the limit on open files',
  ENFILE: 'too many files are open. Raise the limit on open files',
};

/** What is wrong with a file or directory of the server's own. */
const OWN_FILES: Readonly<Record<string, string>> = {
  ...SHORTAGES,
  EACCES: 'this user has no access to it. Correct its owner and its mode, or choose another directory',
  EPERM: 'this user has no access to it. Correct its owner and its mode, or choose another directory',
  ENOTDIR: 'a file is where a directory should be. Move it away, or choose another directory',
  EISDIR: 'a directory is where a file should be. Move it away, or choose another directory',
  ELOOP: 'it is a symbolic link, which is not followed. Replace it with a file of this user',
};

/** A failed call is not a bug where the machine is short of something: it works again once that is fixed. */
export function shortageOf(error: unknown): DomainError | undefined {
  return describe(error, SHORTAGES);
}

/** The same for the server's own files, whose state only the operator can correct. */
export function ownFileProblem(error: unknown): DomainError | undefined {
  return describe(error, OWN_FILES);
}

/** For `catch`: an error from writing to an open file does not say which file that was. */
export function naming(file: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof Error && 'code' in error && !('path' in error)) Object.assign(error, { path: file });
    throw error;
  };
}

function describe(error: unknown, problems: Readonly<Record<string, string>>): DomainError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code: raw, path, syscall } = error as NodeJS.ErrnoException;
  // A directory that cannot be created because there is a file.
  const code = raw === 'EEXIST' && syscall === 'mkdir' ? 'ENOTDIR' : raw;
  const problem = code !== undefined && Object.hasOwn(problems, code) ? problems[code] : undefined;
  if (problem === undefined) return undefined;
  const where = path ?? 'A file of this server';
  return new DomainError('UNAVAILABLE', `${where}: ${problem}, then try again. (${String(raw)})`, { cause: error });
}

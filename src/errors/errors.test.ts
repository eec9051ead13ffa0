import { expect, it, test } from 'vitest';
import { naming, ownFileProblem, shortageOf } from './errors.ts';

const systemError = (code: string, more: Partial<NodeJS.ErrnoException> = {}): Error =>
  Object.assign(new Error(`${code}: as Node words it`), { code, ...more });

test.each([
  ['ENOSPC', '/state: the disk is full. Free some space there, then try again. (ENOSPC)'],
  [
    'EROFS',
    '/state: the file system is read-only. Make it writable, or choose another directory, then try again. (EROFS)',
  ],
])('a shortage of the machine is unavailable, with what to do: %s', (code, message) => {
  expect(shortageOf(systemError(code, { path: '/state' }))).toMatchObject({ code: 'UNAVAILABLE', message });
});

test.each([systemError('ENOENT'), systemError('EACCES'), new Error('a bug'), 'text', undefined])(
  'anything else stays as it is: %s',
  (error) => {
    expect(shortageOf(error)).toBeUndefined();
  },
);

it('explains a file in the place of a directory, but not a file that was to be new', () => {
  expect(ownFileProblem(systemError('EEXIST', { syscall: 'mkdir', path: '/state' }))?.message).toMatch(
    /^\/state: a file/,
  );
  expect(ownFileProblem(systemError('EEXIST', { syscall: 'open', path: '/state' }))).toBeUndefined();
});

it('names the file that was written, unless the error already does', () => {
  expect(() => naming('/file')(systemError('ENOSPC'))).toThrow(expect.objectContaining({ path: '/file' }));
  expect(() => naming('/file')(systemError('ENOSPC', { path: '/own' }))).toThrow(
    expect.objectContaining({ path: '/own' }),
  );
});

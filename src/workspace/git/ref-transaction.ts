import { DomainError } from '../../errors/errors.ts';
import { killTree, spawnGit } from './git-process.ts';
import type { Git } from './git.ts';

export interface RefUpdate {
  readonly ref: string;
  readonly to: string;
  readonly from: string;
  readonly message: string;
}

/** Files are written but the ref has not followed, or not all files are: the journal says how to continue. */
export class UnfinishedError extends DomainError {
  constructor(message: string, options?: ErrorOptions) {
    super('INTERNAL', message, options);
  }
}

const PATIENCE_MS = 30_000;

/**
 * Locks the ref at its old value, does the work, then moves it: no one else can move it in between, and if the work
 * fails or this process dies, git sees its input end and releases the lock. Undefined if the ref was not at the old
 * value.
 */
export async function withRefLocked<T>(git: Git, update: RefUpdate, work: () => Promise<T>): Promise<T | undefined> {
  const { ref, to, from, message } = update;
  const child = spawnGit(git.host, {
    cwd: git.cwd,
    prefix: git.prefix,
    args: ['update-ref', '-m', message, '--stdin'],
    env: git.env,
  });
  let output = '';
  let errors = '';
  let onChange = (): void => undefined;
  child.stdout?.setEncoding('utf8').on('data', (piece: string) => ((output += piece), onChange()));
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => (errors += piece));
  child.stdin?.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => {
    child.on('error', () => resolve(-1));
    child.on('close', (code) => resolve(code ?? -1));
  });
  const answered = (word: string): Promise<boolean> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => killTree(child), PATIENCE_MS);
      const settle = (isThere: boolean): void => {
        clearTimeout(timer);
        resolve(isThere);
      };
      onChange = () => {
        if (output.includes(`${word}: ok\n`)) settle(true);
      };
      onChange();
      void closed.then(() => settle(output.includes(`${word}: ok\n`)));
    });

  child.stdin?.write(`start\nupdate ${ref} ${to} ${from}\nprepare\n`);
  if (!(await answered('prepare'))) {
    if (/but expected|reference already exists|unable to resolve/.test(errors)) return undefined;
    throw new DomainError('INTERNAL', `${ref} cannot be moved: ${errors.trim()}. Nothing was changed.`);
  }
  try {
    const result = await work();
    child.stdin?.end('commit\n');
    if (!(await answered('commit'))) throw new UnfinishedError(`${ref} could not be moved: ${errors.trim()}`);
    return result;
  } finally {
    child.stdin?.end();
    await closed;
  }
}

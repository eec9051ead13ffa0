import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { PinnedSettings } from '../../schema/worktree-record.ts';
import type { Checkout } from './checkout.ts';
import { gitIn, zeroSeparated, readPlainFile } from './git.ts';
import type { GitHost } from './git-process.ts';

/** Settings that determine how files are read and written, and the commit author. None of them runs anything. */
const COPIED = new Set([
  'core.filemode',
  'core.symlinks',
  'core.ignorecase',
  'core.precomposeunicode',
  'core.autocrlf',
  'core.eol',
  'core.longpaths',
  'core.protectntfs',
  'core.protecthfs',
  'core.sharedrepository',
  'core.excludesfile',
  'core.attributesfile',
  'core.bigfilethreshold',
  'core.trustctime',
  'core.checkstat',
  'core.sparsecheckout',
  'core.sparsecheckoutcone',
  'extensions.objectformat',
  'user.name',
  'user.email',
]);

const FILTER = /^filter\.(.+)\.(clean|smudge|process|required)$/;
export const FILTER_COMMAND = /^filter\.(.+)\.(clean|smudge|process)$/;

interface Setting {
  readonly scope: string;
  readonly key: string;
  readonly value: string;
}

export interface PinOptions {
  /** `user`: those in the repository's own configuration are ignored; whoever wrote it may not be trusted. */
  readonly filters?: 'all' | 'user';
}

/**
 * What is known about a repository when a session starts, before it can have changed anything. Git that later reads the
 * session's files gets this instead of the repository's own configuration.
 */
export async function pinSettings(
  host: GitHost,
  checkout: Checkout,
  { filters = 'all' }: PinOptions = {},
): Promise<PinnedSettings> {
  const settings = (await readSettings(host, checkout)).filter(
    ({ scope, key }) => filters === 'all' || !FILTER.test(key) || scope === 'system' || scope === 'global',
  );
  const last = new Map(settings.map(({ key, value }) => [key, value]));
  const read = (...names: string[]): Promise<string> => readPlainFile(path.join(...names));
  const own = await repositoryFilters(last, checkout);
  const [exclude, attributes, sparse] = await Promise.all([
    read(checkout.commonDir, 'info', 'exclude'),
    read(checkout.commonDir, 'info', 'attributes'),
    read(checkout.gitDir, 'info', 'sparse-checkout'),
  ]);
  return {
    config: [...last].filter(([key]) => COPIED.has(key) || (FILTER.test(key) && !own.has(FILTER.exec(key)?.[1] ?? ''))),
    exclude,
    attributes,
    sparse,
  };
}

/** Filters that run a file from the repository: a session could write what they would run. */
async function repositoryFilters(
  settings: ReadonlyMap<string, string>,
  { workTree }: Checkout,
): Promise<ReadonlySet<string>> {
  const own = new Set<string>();
  for (const [key, command] of settings) {
    const name = FILTER_COMMAND.exec(key)?.[1];
    if (name === undefined) continue;
    const [program = '', ...words] = command.match(/[^\s"'`;&|<>(){}$=]+/g) ?? [];
    // The program is looked up on the PATH unless it is given as a path.
    const files = [...(/[\\/]/.test(program) ? [program] : []), ...words];
    const inside = files
      .map((word) => path.resolve(workTree, word))
      .filter((file) => file.startsWith(workTree + path.sep));
    const found = await Promise.all(inside.map((file) => lstat(file).catch(() => undefined)));
    if (found.some(Boolean) || /rev-parse|GIT_(DIR|WORK_TREE)/.test(command)) own.add(name);
  }
  return own;
}

export function objectFormat({ config }: PinnedSettings): 'sha1' | 'sha256' {
  return config.some(([key, value]) => key === 'extensions.objectformat' && value === 'sha256') ? 'sha256' : 'sha1';
}

/** How long an object's name is in binary files such as the index. */
export function oidBytes(format: 'sha1' | 'sha256'): number {
  return format === 'sha1' ? 20 : 32;
}

const SPARSE = new Set(['core.sparsecheckout', 'core.sparsecheckoutcone']);

/**
 * The same settings for a checkout that may show different files: with another one's, git would remove files from it.
 */
export async function withSparseness(
  host: GitHost,
  checkout: Checkout,
  pinned: PinnedSettings,
): Promise<PinnedSettings> {
  const now = (await readSettings(host, checkout)).filter(({ key }) => SPARSE.has(key));
  const config = [
    ...pinned.config.filter(([key]) => !SPARSE.has(key)),
    ...now.map(({ key, value }): [string, string] => [key, value]),
  ];
  const file = path.join(checkout.gitDir, 'info', 'sparse-checkout');
  return { ...pinned, config, sparse: await readPlainFile(file) };
}

/** Filters added or changed since: name and what differs. */
export async function newFilters(
  host: GitHost,
  checkout: Checkout,
  pinned: PinnedSettings,
): Promise<ReadonlySet<string>> {
  const known = new Map(pinned.config);
  const now = new Map((await readSettings(host, checkout)).map(({ key, value }) => [key, value]));
  const names = [...now].flatMap(([key, value]) => {
    const name = FILTER.exec(key)?.[1];
    return name !== undefined && known.get(key) !== value ? [name] : [];
  });
  return new Set(names);
}

async function readSettings(host: GitHost, checkout: Checkout): Promise<Setting[]> {
  const fields = zeroSeparated(await gitIn(host, checkout.gitDir)(['config', '--list', '-z', '--show-scope']));
  const settings: Setting[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const scope = fields[index] ?? '';
    const [key = '', ...value] = (fields[index + 1] ?? '').split('\n');
    // Our own overrides are listed too.
    if (scope !== 'command') settings.push({ scope, key, value: value.length === 0 ? 'true' : value.join('\n') });
  }
  return settings;
}

/** The text of a configuration file. */
export function configText(settings: readonly (readonly [key: string, value: string])[]): string {
  return settings
    .map(([key, value]) => {
      const first = key.indexOf('.');
      const last = key.lastIndexOf('.');
      const subsection = first === last ? '' : ` ${quoted(key.slice(first + 1, last))}`;
      return `[${key.slice(0, first)}${subsection}]\n\t${key.slice(last + 1)} = ${quoted(value)}\n`;
    })
    .join('');
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;
}

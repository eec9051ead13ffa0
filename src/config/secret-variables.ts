import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import type { Host } from './host.ts';
import { SettingsError } from './bad-input.ts';
import { flagOf, rowOf, SETTING_KEYS, variableOf, type SettingKey } from './settings-table.ts';

/** Where a process finds the secrets that it was not given as variables: `stdin`, or the path of a private file. */
export const SECRETS_VARIABLE = 'CLAUDE_CODE_MCP_SECRETS_FROM';

const SECRET_KEYS: readonly SettingKey[] = SETTING_KEYS.filter((key) => rowOf(key).kind.isSecret === true);
const SECRET_NAMES: ReadonlySet<string> = new Set(SECRET_KEYS.map(variableOf));
const NAME_OF_FLAG: ReadonlyMap<string, string> = new Map(SECRET_KEYS.map((key) => [flagOf(key), variableOf(key)]));

/** Settings that must not be readable in a list of processes, as variables. */
export type Secrets = Readonly<Record<string, string>>;

function isSecretVariable(name: string): boolean {
  return SECRET_NAMES.has(name);
}

/** The secrets among the values of settings. */
export function secretsOf(settings: Readonly<Partial<Record<SettingKey, unknown>>>): Secrets {
  return Object.fromEntries(
    SECRET_KEYS.flatMap((key) => {
      const value = settings[key];
      return typeof value === 'string' ? [[variableOf(key), value]] : [];
    }),
  );
}

/** What a process is started with, divided into what anyone may see and the secrets; flags win over variables. */
export function withoutSecrets(given: { readonly argv: readonly string[]; readonly env: NodeJS.ProcessEnv }): {
  readonly argv: string[];
  readonly env: NodeJS.ProcessEnv;
  readonly secrets: Secrets;
} {
  const secrets: Record<string, string> = {};
  const env: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(given.env)) {
    if (!isSecretVariable(name)) env[name] = value;
    else if (value) secrets[name] = value;
  }
  const argv: string[] = [];
  for (let index = 0; index < given.argv.length; index++) {
    const argument = given.argv[index] ?? '';
    const { name, value } = secretFlag(argument);
    if (name === undefined) argv.push(argument);
    else secrets[name] = value ?? given.argv[++index] ?? '';
  }
  return { argv, env, secrets };
}

function secretFlag(argument: string): { name?: string | undefined; value?: string | undefined } {
  const end = argument.indexOf('=');
  if (end < 0) return { name: NAME_OF_FLAG.get(argument) };
  return { name: NAME_OF_FLAG.get(argument.slice(0, end)), value: argument.slice(end + 1) };
}

/**
 * The host with the secrets that were handed over to this process, which from now on no one can read in its
 * environment or its arguments. Call once, before anything is started.
 */
export function withHiddenSecrets(host: Host, argv: readonly string[]): Host {
  const { secrets } = withoutSecrets({ argv, env: host.env });
  const { [SECRETS_VARIABLE]: from, ...variables } = host.env;
  if (Object.keys(secrets).length === 0 && from === undefined) return host;
  const env = { ...variables, ...(from !== undefined && handedOver(from)) };
  for (const name of [...SECRET_NAMES, SECRETS_VARIABLE]) Reflect.deleteProperty(process.env, name);
  if (host.platform === 'linux') overwriteSecrets();
  return { ...host, env };
}

function handedOver(from: string): Secrets {
  let found: Record<string, unknown>;
  try {
    found = JSON.parse(readFileSync(from === 'stdin' ? 0 : from, 'utf8')) as Record<string, unknown>;
  } catch {
    // Nothing of the text: it contains secrets.
    throw new SettingsError(`${SECRETS_VARIABLE}: no secrets can be read from ${from}; run "hub install" again.`);
  }
  return Object.fromEntries(
    Object.entries(found).flatMap(([name, value]) =>
      isSecretVariable(name) && typeof value === 'string' ? [[name, value]] : [],
    ),
  );
}

/**
 * The kernel shows the memory in which a process was given its arguments and variables (`ps`, `/proc/<pid>/environ`),
 * and removing a variable does not change that memory. Nothing refers to these bytes any more: Node has copied the
 * arguments, and the variables have been removed.
 */
function overwriteSecrets(): void {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // The command name may contain spaces and parentheses: count from the last one, where the third field begins.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [argStart = 0, argEnd = 0, envStart = 0, envEnd = 0] = fields.slice(45, 49).map(Number);
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      rewrite(memory, argStart, argEnd, secretArguments);
      rewrite(memory, envStart, envEnd, secretEntries);
    } finally {
      closeSync(memory);
    }
  } catch {
    // Some containers have no /proc, or do not let a process write to it.
  }
}

interface Range {
  readonly start: number;
  readonly end: number;
}

function rewrite(memory: number, start: number, end: number, find: (texts: readonly TextAt[]) => Range[]): void {
  if (!(start > 0 && end > start)) return;
  const block = Buffer.alloc(end - start);
  readSync(memory, block, 0, block.length, start);
  for (const range of find(textsIn(block)))
    writeSync(memory, Buffer.alloc(range.end - range.start, '*'), 0, range.end - range.start, start + range.start);
}

interface TextAt extends Range {
  readonly text: string;
}

function textsIn(block: Buffer): TextAt[] {
  let start = 0;
  // One byte per character, so that positions are those of the block.
  return block
    .toString('latin1')
    .split('\0')
    .map((text) => {
      const at = { text, start, end: start + text.length };
      start = at.end + 1;
      return at;
    });
}

function secretEntries(entries: readonly TextAt[]): Range[] {
  return entries.flatMap(({ text, start, end }) => {
    const equals = text.indexOf('=');
    return equals > 0 && isSecretVariable(text.slice(0, equals)) ? [{ start: start + equals + 1, end }] : [];
  });
}

function secretArguments(all: readonly TextAt[]): Range[] {
  return all.flatMap(({ text, end }, index) => {
    const { name, value } = secretFlag(text);
    if (name === undefined) return [];
    return value === undefined ? all.slice(index + 1, index + 2) : [{ start: end - value.length, end }];
  });
}

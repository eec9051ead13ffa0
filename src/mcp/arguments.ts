import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { nearestName } from '../config/bad-input.ts';
import { whyNotOffered } from '../driver/options-table.ts';
import { DomainError } from '../errors/errors.ts';
import { isObject } from '../schema/json.ts';

export type Arguments = Record<string, unknown>;

/** Parses once at the boundary. Anything invalid is one INVALID_ARGUMENT that names everything wrong. */
export function parseArguments<Schema extends z.ZodObject>(
  schema: Schema,
  args: Arguments,
  alsoKnown: readonly string[],
): z.infer<Schema> {
  const parsed = schema.safeParse(withoutNulls(schema, args));
  if (parsed.success) return parsed.data;
  const known = [...Object.keys(schema.shape), ...alsoKnown];
  const problems = parsed.error.issues.flatMap((issue) => describe(issue, known, schema));
  throw new DomainError('INVALID_ARGUMENT', problems.slice(0, 8).join(' '));
}

/**
 * Moves keys that belong into a nested object there, so that the flat form means the same as the nested one. `null`
 * means omitted, in either form.
 */
export function nestFlat(args: Arguments, into: string, keys: readonly string[]): Arguments {
  const mentioned = keys.filter((key) => args[key] !== undefined);
  if (mentioned.length === 0) return args;
  const nested = args[into] ?? undefined;
  if (nested !== undefined && !isObject(nested)) return args;
  const merged: Arguments = { ...nested };
  const rest = Object.fromEntries(Object.entries(args).filter(([key]) => !mentioned.includes(key)));
  const flat = mentioned.filter((key) => args[key] !== null);
  if (flat.length === 0) return rest;
  for (const key of flat) {
    if ((merged[key] ?? undefined) !== undefined && !isDeepStrictEqual(merged[key], args[key])) {
      throw new DomainError(
        'INVALID_ARGUMENT',
        `${key} is given twice with different values, as ${key} and as ${into}.${key}.`,
      );
    }
    merged[key] = args[key];
  }
  return { ...rest, [into]: merged };
}

function describe(issue: z.core.$ZodIssue, known: readonly string[], schema: z.ZodObject): string[] {
  const where = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    // Names one level up are known too: a common option written under `advanced` should find its place.
    const siblings = where === '' ? known : [...siblingsOf(schema, issue.path), ...known];
    return issue.keys.map((key) => unknownParameter(where === '' ? key : `${where}.${key}`, key, siblings));
  }
  if (issue.code === 'invalid_union') {
    const closest = issue.errors.flat().filter((inner) => inner.path.length > 0);
    if (closest.length > 0 && issue.errors.length > 0)
      return closest.slice(0, 2).map((inner) => `${[where, ...inner.path.map(String)].join('.')}: ${wordsFor(inner)}.`);
  }
  return [`${where === '' ? 'Arguments' : where}: ${wordsFor(issue)}.`];
}

/** What is wrong with a value, in the words of this server; those of a schema's own checks are its own already. */
function wordsFor(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.message.endsWith('received undefined')
        ? 'is required'
        : `must be ${KINDS[issue.expected] ?? `of type ${issue.expected}`}`;
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'too_small':
      return `must ${sizeWords(issue.origin, issue.inclusive === false ? 'more than' : 'at least', Number(issue.minimum))}`;
    case 'too_big':
      return `must ${sizeWords(issue.origin, issue.inclusive === false ? 'less than' : 'at most', Number(issue.maximum))}`;
    case 'custom':
      return issue.message;
    case 'invalid_union':
      return unionWords(issue);
    default:
      return 'is not valid here';
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

function sizeWords(origin: string, how: string, size: number): string {
  if (origin === 'string')
    return size === 1 && how === 'at least' ? 'not be empty' : `have ${how} ${String(size)} characters`;
  return origin === 'array' ? `have ${how} ${String(size)} item${size === 1 ? '' : 's'}` : `be ${how} ${String(size)}`;
}

/** Alternatives that differ in kind: what each of them would have been. */
function unionWords({ errors }: Extract<z.core.$ZodIssue, { code: 'invalid_union' }>): string {
  const kinds = [...new Set(errors.flatMap(([first]) => (first ? [wordsFor(first)] : [])))];
  return kinds.length === 0 ? 'is not valid here' : kinds.join(', or ');
}

/** What the other toolset calls the same parameter. */
const OTHER_TOOLSET: Readonly<Record<string, string>> = {
  cwd: 'workingDirectory',
  workingDirectory: 'cwd',
  prompt: 'message',
  message: 'prompt',
  requestId: 'inputId',
  inputId: 'requestId',
  denyMessage: 'reason',
  reason: 'denyMessage',
};

function unknownParameter(where: string, key: string, candidates: readonly string[]): string {
  const why = whyNotOffered(key);
  if (why !== undefined) return `Parameter ${where} is not offered: ${why}.`;
  if (/^time_?out(_?ms|_?seconds)?$/i.test(key) && candidates.includes('waitMs'))
    return `Unknown parameter ${where}; waitMs says how long a call waits, and a session works on until it is done, interrupted or cancelled.`;
  const nearest = [OTHER_TOOLSET[key] ?? ''].find((name) => candidates.includes(name)) ?? nearestName(key, candidates);
  return `Unknown parameter ${where}${nearest === undefined ? '.' : `; did you mean ${nearest}?`}`;
}

function siblingsOf(schema: z.ZodObject, path: PropertyKey[]): string[] {
  let current: unknown = schema;
  for (const key of path) current = unwrap(current)?.shape[String(key)];
  return Object.keys(unwrap(current)?.shape ?? {});
}

function unwrap(schema: unknown): z.ZodObject | undefined {
  let current = schema as { shape?: unknown; unwrap?: () => unknown } | undefined;
  while (current && current.shape === undefined && typeof current.unwrap === 'function')
    current = current.unwrap() as typeof current;
  return current?.shape === undefined ? undefined : (current as unknown as z.ZodObject);
}

/** What is read from a schema of any kind. */
interface Shape {
  readonly def: {
    readonly type: string;
    readonly innerType?: Shape;
    readonly shape?: Readonly<Record<string, Shape>>;
    readonly catchall?: Shape;
    readonly element?: Shape;
    readonly valueType?: Shape;
    readonly options?: readonly Shape[];
  };
  safeParse(value: unknown): { success: boolean };
}

/**
 * `null` for an optional parameter means omitted, at any depth, unless its schema is nullable. Only the schema knows what is a parameter: in free-form
 * data (an input, a JSON Schema, settings) a null is a value.
 */
function withoutNulls(schema: z.ZodType, value: unknown): unknown {
  return strip(schema, value);
}

function strip(schema: Shape, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { type, innerType, shape, catchall, element, valueType, options } = schema.def;
  if (innerType) return strip(innerType, value);
  if (type === 'array' && element && Array.isArray(value)) return value.map((item: unknown) => strip(element, item));
  if (type === 'union' && options) return stripAsOneOf(options, value);
  if (Array.isArray(value)) return value;
  if (type === 'record' && valueType) return mapEntries(value, (_name, item) => [strip(valueType, item)]);
  if (type !== 'object' || !shape) return value;
  return mapEntries(value, (name, item) => {
    const parameter = Object.hasOwn(shape, name) ? shape[name] : undefined;
    // Further parameters that the SDK knows and this schema passes through, such as those of a sub-agent.
    if (!parameter) return item === null && catchall?.def.type === 'unknown' ? [] : [item];
    const isOmitted = item === null && !isNullable(parameter) && parameter.safeParse(undefined).success;
    return isOmitted ? [] : [strip(parameter, item)];
  });
}

/** Where a schema names null as a value, it means something of its own. */
function isNullable({ def: { type, innerType } }: Shape): boolean {
  return type === 'nullable' || (innerType !== undefined && isNullable(innerType));
}

function stripAsOneOf(options: readonly Shape[], value: object): unknown {
  for (const option of options) {
    const stripped = strip(option, value);
    if (option.safeParse(stripped).success) return stripped;
  }
  return value;
}

function mapEntries(object: object, map: (name: string, value: unknown) => [] | [unknown]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) => map(name, value).map((mapped) => [name, mapped])),
  );
}

/** Deeper than any hand-written schema, agent or tool input. Recursive code runs out of stack far beyond this. */
const MAX_LEVELS = 100;

/**
 * What no schema catches: nesting so deep that recursive code fails, and keys named `__proto__`, which JSON may contain
 * and libraries silently ignore. Searched without recursion.
 */
export function checkShape(args: Readonly<Record<string, unknown>>): void {
  let level: [where: string, value: object][] = [['', args]];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_LEVELS) {
      const [parameter = ''] = level[0]?.[0].split('.', 1) ?? [];
      throw new DomainError('INVALID_ARGUMENT', `${parameter}: nested deeper than ${String(MAX_LEVELS)} levels.`);
    }
    level = level.flatMap(([where, value]) => objectsIn(where, value));
  }
}

function objectsIn(where: string, value: object): [where: string, value: object][] {
  return Object.entries(value).flatMap(([key, item]: [string, unknown]): [string, object][] => {
    const path = where === '' ? key : `${where}.${key}`;
    if (key === '__proto__') throw new DomainError('INVALID_ARGUMENT', `Unknown parameter ${path}.`);
    return typeof item === 'object' && item !== null ? [[path, item]] : [];
  });
}

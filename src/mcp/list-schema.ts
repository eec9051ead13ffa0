import { z } from 'zod';
import { isObject } from '../schema/json.ts';
import { NOTE_KEYS } from '../schema/notes.ts';

export interface ObjectSchema {
  type: 'object';
  [keyword: string]: unknown;
}

/** JSON Schema for the tools list: what a model needs to fill in, without the bytes only a validator needs. */
export function listedSchema(schema: z.ZodObject): ObjectSchema {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return prune(json) as ObjectSchema;
}

/** Metadata of a schema that is too long to list in full: what is listed instead. */
const LISTED = 'listed';
const UNLISTED = 'unlisted';

export function listedAs<Schema extends z.ZodType>(schema: Schema, listed: Record<string, unknown>): Schema {
  return schema.meta({ [LISTED]: listed });
}

/** For options that are accepted and documented but too rare to cost every caller their bytes. */
export function unlisted<Schema extends z.ZodType>(schema: Schema): Schema {
  return schema.meta({ [UNLISTED]: true });
}

const DROPPED = new Set([
  '$schema',
  'additionalProperties',
  'propertyNames',
  'minLength',
  'default',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'minItems',
  'maxItems',
]);

function isListed(keyword: string): boolean {
  return !DROPPED.has(keyword) && !(NOTE_KEYS as readonly string[]).includes(keyword);
}

function prune(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(prune);
  if (typeof value !== 'object' || value === null) return value;
  const schema = value as Record<string, unknown>;
  if (isObject(schema[LISTED])) return schema[LISTED];
  const entries = Object.entries(schema).filter(([name]) => isListed(name));
  return Object.fromEntries(
    entries.map(([name, item]) => [name, name === 'properties' ? listedProperties(item as object) : prune(item)]),
  );
}

function listedProperties(properties: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([, property]) => !isObject(property) || property[UNLISTED] !== true)
      .map(([name, property]) => [name, prune(property)]),
  );
}

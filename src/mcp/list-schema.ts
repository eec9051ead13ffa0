import { z } from 'zod';

export interface ObjectSchema {
  type: 'object';
  [keyword: string]: unknown;
}

/** JSON Schema for the tools list: what a model needs to fill in, without the bytes only a validator needs. */
export function listedSchema(schema: z.ZodObject): ObjectSchema {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return prune(json) as ObjectSchema;
}

/** Metadata of a schema that is too long to be listed whole: what is listed in its place. */
const LISTED = 'listed';

export function listedAs<Schema extends z.ZodType>(schema: Schema, listed: Record<string, unknown>): Schema {
  return schema.meta({ [LISTED]: listed });
}

function isShape(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

const DROPPED = new Set(['$schema', 'additionalProperties', 'propertyNames', 'minLength', 'default']);

function prune(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(prune);
  if (typeof value !== 'object' || value === null) return value;
  const schema = value as Record<string, unknown>;
  if (isShape(schema[LISTED])) return schema[LISTED];
  const entries = Object.entries(schema).filter(([name, item]) => !isNoise(schema, name, item));
  return Object.fromEntries(
    entries.map(([name, item]) => [name, name === 'properties' ? mapValues(item as object, prune) : prune(item)]),
  );
}

function isNoise(schema: Record<string, unknown>, name: string, item: unknown): boolean {
  if (DROPPED.has(name)) return schema['properties'] === undefined || name !== 'default';
  // Bounds of every integer there is.
  return (
    (name === 'maximum' || name === 'minimum' || name === 'exclusiveMinimum') &&
    typeof item === 'number' &&
    Math.abs(item) >= 2_147_483_647
  );
}

function mapValues(object: object, map: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value)]));
}

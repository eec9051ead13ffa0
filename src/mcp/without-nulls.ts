import type { z } from 'zod';

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
 * `null` for an optional parameter means omitted, at any depth. Only the schema knows what is a parameter: in free-form
 * data (an input, a JSON Schema, settings) a null is a value.
 */
export function withoutNulls(schema: z.ZodType, value: unknown): unknown {
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
    return item === null && parameter.safeParse(undefined).success ? [] : [strip(parameter, item)];
  });
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

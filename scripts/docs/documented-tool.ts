/** What the reference says about a tool, read from the notes in its schemas (`src/schema/notes.ts`). */

import { z } from 'zod';
import type { Tool } from '../../src/mcp/define-tool.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface DocumentedField {
  /** `pollOptions.maxBytes`; the items of a list are written as `actions[].requestId`. */
  readonly path: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
  readonly note: string | undefined;
  /** What applies without it; only for a parameter that may be omitted. */
  readonly whenOmitted: string | undefined;
}

/** Every parameter of a tool: objects first, then their contents. */
export function parametersOf(tool: Tool): DocumentedField[] {
  return fieldsOf(jsonSchemaOf(tool.input(), 'input'));
}

/** Every field that a tool may return. */
export function returnsOf(tool: Tool): DocumentedField[] {
  return fieldsOf(jsonSchemaOf(tool.output(), 'output'));
}

/** The tool that returns the same, and whose page describes it. */
export function returnsLike(tool: Tool): string | undefined {
  const name = describedWith(jsonSchemaOf(tool.output(), 'output'));
  return name === tool.name ? undefined : name;
}

function fieldsOf(schema: JsonSchema): DocumentedField[] {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>;
  const required = (schema['required'] ?? []) as string[];
  return Object.entries(properties).flatMap(([name, property]) => [
    {
      path: name,
      required: required.includes(name),
      schema: property,
      note: property['note'] as string | undefined,
      whenOmitted: property['whenOmitted'] as string | undefined,
    },
    ...contentsOf(property).map((field) => ({ ...field, path: name + field.path })),
  ]);
}

/** The described contents of an object, or of the objects in a list, with paths that start with `.` or `[]`. */
function contentsOf(schema: JsonSchema): DocumentedField[] {
  const items = schema['items'] as JsonSchema | undefined;
  if (items) return contentsOf(items).map((field) => ({ ...field, path: `[]${field.path}` }));
  const kinds = schema['anyOf'] as JsonSchema[] | undefined;
  if (kinds) return withoutRepeats(kinds.flatMap(contentsOf));
  const fields = fieldsOf(schema);
  if (fields.every(({ note }) => note === undefined)) return [];
  const elsewhere = pathsDescribedWith(describedWith(schema));
  return fields.filter(({ path }) => !elsewhere.has(path)).map((field) => ({ ...field, path: `.${field.path}` }));
}

function withoutRepeats(fields: readonly DocumentedField[]): DocumentedField[] {
  return [...new Map(fields.toReversed().map((field) => [field.path, field])).values()].toReversed();
}

function describedWith(schema: JsonSchema): string | undefined {
  return schema['describedWith'] as string | undefined;
}

function pathsDescribedWith(name: string | undefined): ReadonlySet<string> {
  const tool = Object.values(TOOLSETS)
    .flat()
    .find((candidate) => candidate.name === name);
  return new Set(tool ? parametersOf(tool).map(({ path }) => path) : []);
}

function jsonSchemaOf(schema: z.ZodObject, io: 'input' | 'output'): JsonSchema {
  return z.toJSONSchema(schema, { io, unrepresentable: 'any' });
}

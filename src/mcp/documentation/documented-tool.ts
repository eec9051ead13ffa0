import { z } from 'zod';
import { OPTION_NOTES, type ParameterNote } from '../../schema/option-notes.ts';
import type { Tool } from '../define-tool.ts';
import { COMPACT_NOTES } from './compact-notes.ts';
import { EXPLICIT_NOTES } from './explicit-notes.ts';
import type { ToolNotes } from './tool-notes.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface DocumentedParameter {
  /** `pollOptions.maxBytes` */
  readonly path: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
  readonly note: ParameterNote | undefined;
}

const NOTES: Readonly<Record<string, ToolNotes>> = { ...COMPACT_NOTES, ...EXPLICIT_NOTES };
const NO_NOTES: ToolNotes = { parameters: {}, returns: {} };

export function notesOf(tool: Tool): ToolNotes {
  return NOTES[tool.name] ?? NO_NOTES;
}

/** Every parameter of a tool with its description: objects first, then their contents. */
export function parametersOf(tool: Tool): DocumentedParameter[] {
  return propertiesOf(jsonSchemaOf(tool.input()), '', notesOf(tool));
}

/** Every field that is described for a tool, by path. */
export function returnsOf(tool: Tool): Readonly<Record<string, string>> {
  const { returns, returnsLike } = notesOf(tool);
  return { ...(returnsLike === undefined ? {} : NOTES[returnsLike]?.returns), ...returns };
}

/** The fields a tool declares in its output. */
export function promisedFields(tool: Tool): string[] {
  return Object.keys(tool.output().shape);
}

function propertiesOf(schema: JsonSchema, prefix: string, notes: ToolNotes): DocumentedParameter[] {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>;
  const required = (schema['required'] ?? []) as string[];
  return Object.entries(properties).flatMap(([name, property]) => {
    const path = prefix + name;
    const note = notes.parameters[path] ?? optionNote(name);
    const parameter = { path, required: required.includes(name), schema: property, note };
    if (property['properties'] === undefined || !(path in notes.parameters)) return [parameter];
    const inside = propertiesOf(property, `${path}.`, notes);
    const isElsewhere = notes.describedElsewhere?.includes(path) ?? false;
    return [parameter, ...(isElsewhere ? inside.filter((inner) => inner.path in notes.parameters) : inside)];
  });
}

function optionNote(name: string): ParameterNote | undefined {
  return (OPTION_NOTES as Readonly<Record<string, ParameterNote | undefined>>)[name];
}

function jsonSchemaOf(schema: z.ZodObject): JsonSchema {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
}

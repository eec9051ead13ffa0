/** Describes a JSON Schema, briefly enough for a table cell. */

import type { JsonSchema } from './documented-tool.ts';

/** Larger bounds say no more than "a number". */
const NO_BOUND = 2_147_483_647;
const MAX_CHOICES = 4;

export function typeInWords(schema: JsonSchema): string {
  const choices = (schema['anyOf'] ?? schema['oneOf']) as JsonSchema[] | undefined;
  if (choices) return choicesInWords(choices);
  const words = schema['enum'] as unknown[] | undefined;
  if (words) return words.map((word) => `\`${String(word)}\``).join(', ');
  if ('const' in schema) return `\`${JSON.stringify(schema['const'])}\``;
  switch (schema['type']) {
    case 'integer':
    case 'number':
      return numberInWords(schema);
    case 'array':
      return `list of ${plural(typeInWords(schema['items'] as JsonSchema))}`;
    case 'object':
      return objectInWords(schema);
    case undefined:
      return 'any';
    default:
      return String(schema['type']);
  }
}

function choicesInWords(choices: readonly JsonSchema[]): string {
  const words = [...new Set(choices.map(typeInWords))];
  return words.length > MAX_CHOICES ? 'object, one of several kinds' : words.join(' or ');
}

function numberInWords(schema: JsonSchema): string {
  const { type, minimum, maximum, exclusiveMinimum } = schema as Record<string, unknown>;
  const above = type === 'integer' ? undefined : meaningful(exclusiveMinimum);
  const from = type === 'integer' && exclusiveMinimum === 0 ? 1 : meaningful(minimum);
  const to = meaningful(maximum);
  if (from !== undefined && to !== undefined) return `${String(type)} ${from} to ${to}`;
  const bounds = [
    from === undefined ? '' : `≥ ${from}`,
    above === undefined ? '' : `> ${above}`,
    to === undefined ? '' : `≤ ${to}`,
  ].filter(Boolean);
  return [String(type), ...bounds].join(' ');
}

function meaningful(bound: unknown): number | undefined {
  return typeof bound === 'number' && Math.abs(bound) < NO_BOUND ? bound : undefined;
}

function objectInWords(schema: JsonSchema): string {
  const properties = schema['properties'] as Record<string, JsonSchema> | undefined;
  if (properties === undefined) return 'object';
  const required = (schema['required'] ?? []) as string[];
  const names = Object.entries(properties).map(([name, property]) =>
    'const' in property ? `${name}: ${JSON.stringify(property['const'])}` : required.includes(name) ? name : `${name}?`,
  );
  // Large objects have their own rows.
  return names.length > 6 ? 'object' : `\`{${names.join(', ')}}\``;
}

function plural(words: string): string {
  if (words.includes(' or ')) return `(${words})`;
  return /^[a-z]+$/.test(words) && words !== 'any' ? `${words}s` : words;
}

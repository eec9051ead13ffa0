import { expect, test } from 'vitest';
import { parametersOf } from '../../scripts/docs/documented-tool.ts';
import { TOOL_LISTING } from '../../src/mcp/tool-listing.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';
import { ADVANCED_OPTION_NAMES } from '../../src/schema/session-options.ts';

interface Listed {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Listed>>;
}

/** Ids are copied from answers and need no description. */
const GIVEN = new Set(['sessionId']);

function undescribed({ properties = {} }: Listed, prefix = ''): string[] {
  return Object.entries(properties).flatMap(([name, field]) => [
    ...(field.description === undefined && !GIVEN.has(name) ? [prefix + name] : []),
    ...undescribed(field, `${prefix}${name}.`),
  ]);
}

test.each(Object.values(TOOL_LISTING).flat())('every field that $name lists has a description', ({ inputSchema }) => {
  expect(undescribed(inputSchema as Listed)).toEqual([]);
});

test('every accepted but unlisted option is in the reference', () => {
  const [start] = TOOLSETS.compact;
  const documented = new Set(parametersOf(start!).map(({ path }) => path));
  expect(ADVANCED_OPTION_NAMES.filter((name) => !documented.has(`advanced.${name}`))).toEqual([]);
});

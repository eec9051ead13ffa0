import { expect, test } from 'vitest';
import { notesOf, parametersOf, promisedFields, returnsOf } from '../../src/mcp/documentation/documented-tool.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';
import { OPTION_NOTES } from '../../src/schema/option-notes.ts';
import { sessionOptions } from '../../src/schema/session-options.ts';

const tools = Object.values(TOOLSETS).flat();

test.each(tools.map((tool) => [tool.name, tool] as const))('every parameter of %s is described', (_name, tool) => {
  const parameters = parametersOf(tool);
  expect(parameters.length).toBeGreaterThan(0);
  for (const { path, note, required } of parameters) {
    expect(note?.meaning, path).toMatch(/\.$/);
    expect(required || note?.default !== undefined, `${path} has a documented default`).toBe(true);
  }
});

test.each(tools.map((tool) => [tool.name, tool] as const))('every described parameter of %s exists', (_name, tool) => {
  const paths = parametersOf(tool).map(({ path }) => path);
  expect(Object.keys(notesOf(tool).parameters).filter((path) => !paths.includes(path))).toEqual([]);
});

test.each(tools.map((tool) => [tool.name, tool] as const))(
  'every field that %s returns is described',
  (_name, tool) => {
    expect(promisedFields(tool).filter((field) => !(field in returnsOf(tool)))).toEqual([]);
  },
);

test('every session option is described', () => {
  expect(Object.keys(OPTION_NOTES).sort()).toEqual(Object.keys(sessionOptions.shape).sort());
});

import { expect, test } from 'vitest';
import { parametersOf, returnsLike, returnsOf } from '../../scripts/docs/documented-tool.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';

const tools = Object.values(TOOLSETS).flat();

test.each(tools)('every parameter of $name is described', (tool) => {
  const parameters = parametersOf(tool);
  expect(parameters.length).toBeGreaterThan(0);
  for (const { path, note, whenOmitted, required } of parameters) {
    expect(note, path).toMatch(/\.$/);
    expect(required || whenOmitted !== undefined, `${path} has a documented default`).toBe(true);
  }
});

test.each(tools)('every field that $name returns is described', (tool) => {
  const returns = returnsOf(tool);
  expect(returns.map(({ path }) => path)).toContain('error');
  for (const { path, note } of returns) expect(note, path).toMatch(/\.$/);
});

test.each(tools)('what $name returns is described on its own page or on the page it refers to', (tool) => {
  const other = tools.find(({ name }) => name === returnsLike(tool)) ?? tool;
  expect(returnsLike(other)).toBeUndefined();
  const paths = (documented: typeof tool): string[] => returnsOf(documented).map(({ path }) => path);
  expect(paths(other)).toEqual(expect.arrayContaining(paths(tool)));
});

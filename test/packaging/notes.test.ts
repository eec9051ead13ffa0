import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parametersOf, returnsOf } from '../../scripts/docs/documented-tool.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';

const dist = path.resolve(import.meta.dirname, '../../dist');

test('the build ships none of the texts that only the reference needs', () => {
  const fields = Object.values(TOOLSETS)
    .flat()
    .flatMap((tool) => [...parametersOf(tool), ...returnsOf(tool)]);
  // A shorter one may also be the help on a setting, or a comment.
  const texts = new Set(fields.flatMap(({ note = '' }) => (note.length > 80 ? [note] : [])));
  expect(texts.size).toBeGreaterThan(40);
  const modules = ['main.mjs', 'index.mjs', ...readdirSync(path.join(dist, 'chunks')).map((name) => `chunks/${name}`)];
  const code = modules
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => readFileSync(path.join(dist, name), 'utf8'))
    .join('\n');
  expect(code).toContain('claude_code_check');
  expect([...texts].filter((text) => code.includes(text))).toEqual([]);
});

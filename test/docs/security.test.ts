import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const document = readFileSync(new URL('docs/security.md', root), 'utf8');
const named = [...document.matchAll(/`([a-z]+(?:[-/][a-z]+)*): ([^`]+)`/g)].map(([, file = '', title = '']) => [
  file,
  title,
]);

it('every security claim names its tests', () => {
  const claims = document.split('\n').filter((line) => line.startsWith('- '));
  const remains = document.slice(document.indexOf('## What remains'), document.indexOf('## The audit log'));
  const untested = claims.filter((claim) => !remains.includes(claim) && !/`[a-z/-]+: [^`]+`$/.test(claim));
  expect(untested).toEqual([]);
});

it.each(named)('%s has the test "%s"', (file, title) => {
  const path = file.includes('/') ? file : `test/e2e/${file}`;
  // A suite is shared by several test files, or run several times by one; those of the browser are parts of one file.
  const ending = /-suite$|^test\/browser\/(?:pages|journeys)\//.test(file) ? '.ts' : '.test.ts';
  expect(readFileSync(new URL(path + ending, root), 'utf8')).toContain(title);
});

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const document = readFileSync(new URL('docs/security.md', root), 'utf8');
const named = [...document.matchAll(/`([a-z]+(?:[-/][a-z]+)*): ([^`]+)`/g)].map(([, file = '', title = '']) => [
  file,
  title,
]);

it('every claim on security is followed by tests', () => {
  const claims = document.split('\n').filter((line) => line.startsWith('- '));
  const remains = document.slice(document.indexOf('## What remains'), document.indexOf('## The audit log'));
  const untested = claims.filter((claim) => !remains.includes(claim) && !/`[a-z/-]+: [^`]+`$/.test(claim));
  expect(untested).toEqual([]);
});

it.each(named)('%s has the test "%s"', (file, title) => {
  expect(readFileSync(new URL(`${file.includes('/') ? file : `test/e2e/${file}`}.test.ts`, root), 'utf8')).toContain(
    title,
  );
});

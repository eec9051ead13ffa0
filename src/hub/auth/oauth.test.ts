import { expect, test } from 'vitest';
import { subjectId } from './oauth.ts';

test('no two subjects can share an id', () => {
  const hashed = subjectId('auth0|5f7c8ec7c33c6c004bbafe82');
  expect(hashed).not.toContain('|');
  expect(subjectId(hashed)).not.toBe(hashed);
  expect(subjectId(hashed.replace(/^\W/, ''))).not.toBe(hashed);
  expect(subjectId('robot@example.org')).toBe('robot@example.org');
});

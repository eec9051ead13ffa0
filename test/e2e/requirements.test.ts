import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { requirementCoverage } from '../harness/requirement-coverage.ts';
import { texts } from './requirements.ts';

it('every requirement is verified by a test', () => {
  const { unverified, unreadable } = requirementCoverage(texts, fileURLToPath(new URL('.', import.meta.url)));
  expect(unverified).toEqual([]);
  expect(unreadable).toEqual([]);
});

import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { requirementCoverage } from '../harness/requirement-coverage.ts';
import { requirements } from './requirements.ts';

it('every requirement is verified by a test, in every toolset that it applies to', () => {
  const { unverified, unreadable } = requirementCoverage(requirements, fileURLToPath(new URL('.', import.meta.url)));
  expect(unverified).toEqual([]);
  expect(unreadable).toEqual([]);
});

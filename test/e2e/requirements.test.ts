import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { requirementCoverage } from '../harness/requirement-coverage.ts';
import { CONTRACT, type Section } from './contract.ts';
import { requirements } from './requirements.ts';

const root = new URL('../../', import.meta.url);

it('every requirement is verified by a test, in every toolset that it applies to', () => {
  const { unverified, unreadable } = requirementCoverage(requirements, fileURLToPath(new URL('.', import.meta.url)));
  expect(unverified).toEqual([]);
  expect(unreadable).toEqual([]);
});

it('every requirement belongs to one section of the contract', () => {
  const strays = Object.keys(requirements).filter(
    (id) => CONTRACT.filter((section) => idsOf(section).includes(id)).length !== 1,
  );
  expect(strays).toEqual([]);
});

it('every section of the contract has a verified requirement', () => {
  const wrong = CONTRACT.filter((section) => idsOf(section).length + Object.keys(section.tests ?? {}).length === 0);
  expect(wrong.map(({ title }) => title)).toEqual([]);
  expect(CONTRACT).toHaveLength(13);
});

it.each(CONTRACT.flatMap(({ tests = {} }) => Object.entries(tests)))('that %s is shown by %s', (_, named) => {
  const [, file = '', title = ''] = /^(\S+): (.+)$/.exec(named) ?? [];
  // Those of the page are written as steps of one file.
  const source = [`${file}.test.ts`, `${file}.ts`].map((name) => new URL(name, root)).find((one) => existsSync(one));
  const text = source === undefined ? '' : readFileSync(source, 'utf8');
  const isFirstArgument = ["'", '"', '`'].some((quote) =>
    new RegExp(`\\(\\s*${quote}[^${quote}\\n]*${literally(title)}`).test(text),
  );
  expect(isFirstArgument).toBe(true);
});

function literally(title: string): string {
  return title.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

function idsOf({ requirements: starts = [] }: Section): string[] {
  return Object.keys(requirements).filter((id) => starts.some((start) => id.startsWith(start)));
}

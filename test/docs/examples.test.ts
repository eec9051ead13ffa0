/** The examples in the docs are calls the tools accept and answers they return. */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { returnsOf } from '../../scripts/docs/documented-tool.ts';
import { parseArguments } from '../../src/mcp/arguments.ts';
import { TOOLSETS } from '../../src/mcp/toolsets.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import { mkdir, writeFile } from 'node:fs/promises';

const root = path.resolve(import.meta.dirname, '../..');
const pages = ['README.md', ...readdirSync(path.join(root, 'docs')).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith('.md'),
);
const TOOLS = [...TOOLSETS.compact, ...TOOLSETS.explicit];

type JsonObject = Record<string, unknown>;

interface Example {
  readonly page: string;
  /** Set for a call; an answer has no tool. */
  readonly tool: string | undefined;
  readonly json: string;
}

const examples: Example[] = pages.flatMap((page) =>
  [...readFileSync(path.join(root, page), 'utf8').matchAll(/^```json\n([^]*?)^```$/gm)].map(([, block = '']) => {
    const [, name, json = ''] = /^(\w+)?\s*(\{[^]*\})\s*$/.exec(block) ?? [];
    return { page, tool: name, json };
  }),
);

const calls = examples.filter((example) => example.tool !== undefined);
const answers = examples.filter((example) => example.tool === undefined);

test('there are examples', () => {
  expect(calls.length).toBeGreaterThan(3);
  expect(answers.length).toBeGreaterThan(1);
});

test.each(calls)('$page: $tool accepts $json', ({ tool: name, json }) => {
  const called = TOOLS.find((candidate) => candidate.name === name)!;
  parseArguments(called.input(), called.normalize(JSON.parse(json) as JsonObject), called.flatNames);
});

const [, , check] = TOOLSETS.compact;

test.each(answers)('$page: a session can return $json', ({ json }) => {
  const answer = JSON.parse(json) as JsonObject;
  check!.output().parse(answer);
  const described = new Set(returnsOf(check!).map(({ path: field }) => field));
  expect(pathsOf(answer).filter((field) => !described.has(field))).toEqual([]);
});

function pathsOf(value: unknown, prefix = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => pathsOf(item, `${prefix}[]`));
  if (typeof value !== 'object' || value === null || prefix.endsWith('.input')) return [];
  return Object.entries(value).flatMap(([name, item]) => {
    const field = prefix === '' ? name : `${prefix}.${name}`;
    return [field, ...pathsOf(item, field)];
  });
}

describe('the guide’s first task', () => {
  test('shows the activity line and summary of a real answer', async () => {
    const h = await startHarness();
    const file = path.join(h.project, 'src', 'price.ts');
    await mkdir(path.dirname(file));
    await writeFile(file, 'export const price = 1;\n');
    h.model
      .on('Fix the failing test.')
      .reply(
        tool('Read', { file_path: file }),
        tool('Bash', { command: 'ls src', description: 'look' }),
        tool('Edit', { file_path: file, old_string: '1', new_string: '2' }),
        text('done'),
      );
    const real = await h.ok('claude_code', { prompt: 'Fix the failing test.', cwd: h.project, waitMs: 45_000 });
    const shown = JSON.parse(answers.find(({ json }) => json.includes('waiting_permission'))!.json);
    // Neither has what the other lacks: the guide shows every field of a real answer.
    const namesOf = (value: object): string[] =>
      Object.keys(value)
        .filter((name) => name !== 'effective')
        .sort();
    expect(namesOf(real)).toEqual(namesOf(shown));
    expect(namesOf(real.actions[0])).toEqual(namesOf(shown.actions[0]));
    const { type, toolName, summary } = real.actions[0];
    expect(shown.actions[0]).toMatchObject({ type, toolName, summary });
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonTextError, readMember, removeMember, setMember } from '../../src/cli/install/edit-json.ts';

const PATH = ['mcpServers', 'claude-code'];
const ENTRY = { command: 'node', args: ['main.mjs'] };

const key = fc.string().filter((text) => text !== '__proto__');
const config = fc.record(
  { mcpServers: fc.dictionary(key, fc.jsonValue()), theme: fc.jsonValue(), other: fc.dictionary(key, fc.jsonValue()) },
  { requiredKeys: [] },
);
const indent = fc.constantFrom(0, 2, 4, '\t');

test('adding a member changes nothing else in any configuration, and removing it restores the original', () => {
  fc.assert(
    fc.property(config, indent, (value, space) => {
      const { 'claude-code': _, ...servers } = value.mcpServers ?? {};
      const before = { ...value, mcpServers: servers };
      const text = JSON.stringify(before, null, space);
      const added = setMember(text, PATH, ENTRY);
      expect(JSON.parse(added)).toEqual(
        JSON.parse(JSON.stringify({ ...before, mcpServers: { ...servers, 'claude-code': ENTRY } })),
      );
      expect(readMember(added, PATH)).toEqual(ENTRY);
      expect(JSON.parse(removeMember(added, PATH))).toEqual(JSON.parse(text));
    }),
  );
});

test.each([
  ['', '{\n  "a": 1\n}\n'],
  ['{}', '{\n  "a": 1\n}'],
  ['{ // nothing yet\n}', '{ // nothing yet\n  "a": 1\n}'],
  ['{"b":2}', '{"b":2,\n  "a": 1\n}'],
  ['{\n    "b": 2 // two\n}', '{\n    "b": 2, // two\n    "a": 1\n}'],
  ['{\n  "b": 2,\n}', '{\n  "b": 2,\n  "a": 1,\n}'],
  ['\uFEFF{\n  "b": 2\n}', '\uFEFF{\n  "b": 2,\n  "a": 1\n}'],
  ['{\n  "a": 0,\n  "b": "//"\n}', '{\n  "a": 1,\n  "b": "//"\n}'],
  ['{\n  "b": [1,   2], // "," inside\n}', '{\n  "b": [1,   2], // "," inside\n  "a": 1,\n}'],
])('adds a member to %j', (before, after) => {
  expect(setMember(before, ['a'], 1)).toBe(after);
});

test.each([
  ['{\n  "b": 2, // two\n  // ours\n  "a": 1 // one\n}', '{\n  "b": 2 // two\n  // ours // one\n}'],
  ['{\n  "a": 1, // one\n  "b": 2\n}', '{ // one\n  "b": 2\n}'],
  ['{"b": [1,   2], "a": 1}', '{"b": [1,   2]}'],
  ['{ "a": 1 }', '{}'],
  ['{ "b": 1 }', '{ "b": 1 }'],
])('removes a member from %j, keeping every comment', (before, after) => {
  expect(removeMember(before, ['a'])).toBe(after);
});

test('the last of two members with the same name counts', () => {
  expect(readMember('{"a": 1, "a": 2}', ['a'])).toBe(2);
  expect(setMember('{"a": 1, "a": 2}', ['a'], 3)).toBe('{"a": 1, "a": 3}');
});

test.each(['{', '{"a" 1}', '{"a":1 "b":2}', '[1 2]', '{,}', '{"a":tru}', '{} {}', '/* open', '{"a":01x}', '"\\x"'])(
  'refuses %j',
  (text) => {
    expect(() => readMember(text, [])).toThrow(JsonTextError);
  },
);

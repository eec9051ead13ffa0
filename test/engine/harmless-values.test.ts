import { describe, expect, it } from 'vitest';
import { isHarmless } from '../../src/engine/rules/policy.ts';
import type { SessionOptionName, SessionOptions } from '../../src/schema/session-options.ts';

const helper = { description: 'helps', prompt: 'help' };

const HARMLESS: [SessionOptionName, SessionOptions][] = [
  ['sandbox', { sandbox: {} }],
  ['sandbox', { sandbox: { enabled: true, autoAllowBashIfSandboxed: false, allowUnsandboxedCommands: false } }],
  ['sandbox', { sandbox: { enabled: true, autoAllowBashIfSandboxed: false, failIfUnavailable: true } }],
  ['agents', { agents: { helper: { ...helper, disallowedTools: ['Bash'] } } }],
  ['agent', { agent: 'helper', agents: { helper } }],
  ['settingSources', { settingSources: ['user', 'project', 'local'] }],
  ['allowedTools', { allowedTools: [] }],
  ['settings', { settings: {} }],
];

const GRANTING: [SessionOptionName, SessionOptions][] = [
  ['sandbox', { sandbox: { enabled: true, allowUnsandboxedCommands: false } }],
  ['sandbox', { sandbox: { enabled: true, autoAllowBashIfSandboxed: true } }],
  ['sandbox', { sandbox: { enabled: true, filesystem: { allowWrite: ['/'] } } }],
  ['sandbox', { sandbox: { enabled: true, toString: true } }],
  ['agents', { agents: { helper, other: { ...helper, aFieldOfTheFuture: true } } }],
  ['agent', { agent: 'toString', agents: { helper } }],
  ['settings', { settings: '{}' }],
  ['skills', { skills: 'all' }],
  ['pathToClaudeCodeExecutable', { pathToClaudeCodeExecutable: 'claude' }],
];

describe('values that grant no rights', () => {
  it.each(HARMLESS)('%s %j', (name, asked) => expect(isHarmless(name, asked)).toBe(true));
});

describe('values that could grant rights', () => {
  it.each(GRANTING)('%s %j', (name, asked) => expect(isHarmless(name, asked)).toBe(false));
});

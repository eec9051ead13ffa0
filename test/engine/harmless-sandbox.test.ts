import { expect, it } from 'vitest';
import { isHarmless } from '../../src/engine/rules/policy.ts';

it.each<[Record<string, unknown>, boolean]>([
  [{}, true],
  [{ autoAllowBashIfSandboxed: false }, true],
  [{ enabled: true, autoAllowBashIfSandboxed: false }, true],
  [{ enabled: true, autoAllowBashIfSandboxed: false, allowUnsandboxedCommands: false }, true],
  [{ enabled: true }, false],
  [{ enabled: true, autoAllowBashIfSandboxed: true }, false],
  [{ enabled: false }, false],
  [{ enabled: true, autoAllowBashIfSandboxed: false, excludedCommands: ['git *'] }, false],
])('when only a person may grant rights, the sandbox option %j is harmless: %s', (sandbox, harmless) => {
  expect(isHarmless('sandbox', { sandbox })).toBe(harmless);
});

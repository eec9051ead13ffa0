import fc from 'fast-check';
import { expect, it } from 'vitest';
import { loadSettings, type Settings } from '../../src/config/load-settings.ts';
import { SettingsError } from '../../src/config/bad-input.ts';
import { flagOf, rowOf, SETTING_KEYS, variableOf, type SettingKey } from '../../src/config/settings-table.ts';
import { anyCharacter } from '../harness/any-character.ts';

function load(env: NodeJS.ProcessEnv, argv: string[] = [], platform: NodeJS.Platform = 'linux'): Settings {
  return loadSettings({ argv, env, cwd: '/work', homedir: '/home/me', platform });
}

/** The error message, or undefined if the settings are accepted. */
function settingsError(...input: Parameters<typeof load>): string | undefined {
  try {
    load(...input);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    return (error as SettingsError).message;
  }
}

const anyText = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.constantFrom('0', 'off', '~', '/', ':', '-1', '\0', '../x'),
);
const anyFlag = fc.constantFrom(...SETTING_KEYS).map(flagOf);
const anyArgument = fc.oneof(
  anyText,
  anyFlag,
  fc.tuple(anyFlag, anyText).map((pair) => pair.join('=')),
);
const anyVariable = fc.constantFrom(...SETTING_KEYS.map(variableOf), 'LOG_LEVEL', 'PATH', 'XDG_STATE_HOME');
const anyPlatform = fc.constantFrom<NodeJS.Platform>('linux', 'darwin', 'win32');

it('gives settings or a one-line SettingsError for any input', () => {
  const anyInput = [fc.dictionary(anyVariable, anyText), fc.array(anyArgument), anyPlatform] as const;
  fc.assert(
    fc.property(...anyInput, (...input) => {
      expect(settingsError(...input) ?? '').not.toMatch(/[\r\n\u2028\u2029]/);
    }),
    { numRuns: 1000 },
  );
});

const valuesOf: Partial<Record<SettingKey, fc.Arbitrary<unknown>>> = {
  toolset: fc.constantFrom('compact', 'explicit'),
  permissionTimeoutMs: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  startTimeoutMs: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  maxSessions: fc.integer({ min: 1, max: 1000 }),
  maxBudgetUsd: fc.integer({ min: 1, max: 100_000_000 }).map((cents) => cents / 100),
  allowBypass: fc.boolean(),
  denyOptions: fc.uniqueArray(fc.stringMatching(/^[a-zA-Z]+$/), { minLength: 1 }),
  auditLog: fc.stringMatching(/^\/[a-z]+(\/[a-z]+)*$/),
  logLevel: fc.constantFrom('debug', 'info', 'warn', 'error', 'silent'),
};

it.each(Object.entries(valuesOf) as [SettingKey, fc.Arbitrary<unknown>][])(
  'reads back %s as written',
  (key, values) => {
    fc.assert(
      fc.property(values, (value) => {
        const text = rowOf(key).kind.format(value, { platform: 'linux' });
        expect(load({ [variableOf(key)]: text })[key]).toEqual(value);
        expect(load({}, [`${flagOf(key)}=${text}`])[key]).toEqual(value);
      }),
    );
  },
);

it('never reveals a secret', () => {
  const anySecret = fc.stringMatching(/^[a-z0-9]{12,40}$/);
  const anyMistake = fc.constantFrom('--toolset=x', '--nonsense', 'nonsense');
  fc.assert(
    fc.property(anySecret, anyMistake, (secret, mistake) => {
      for (const message of [
        settingsError({ CLAUDE_CODE_MCP_RESUME_SECRET: secret }, [mistake]),
        settingsError({}, ['--resume-secret', secret, mistake]),
        settingsError({}, [`--resume-secrt=${secret}`]),
      ]) {
        expect(message).toEqual(expect.any(String));
        expect(message).not.toContain(secret);
      }
    }),
  );
});

/** Invalid values. Settings that accept any text, or can only be checked at start, are left out. */
const BAD: Partial<Record<SettingKey, string>> = {
  toolset: 'huge',
  approvals: 'nobody',
  permissionTimeoutMs: 'soon',
  allowBypass: 'perhaps',
  allowedDirs: '/no/such/directory',
  sandbox: 'strict',
  sandboxNetwork: 'https://example.org',
  allowSensitiveSessionDetails: '2',
  allowDiskResume: 'maybe',
  resumeSecret: ' ',
  maxSessions: '0',
  maxBudgetUsd: '-1',
  maxTurns: '1.5',
  maxDepth: 'deep',
  eventBufferSize: '0',
  parkAfterMs: '-1',
  sessionTtlMs: 'x',
  runningSessionMaxMs: '0',
  cleanupIntervalMs: '1',
  prewarm: 'hot',
  auditLog: 'on',
  logLevel: 'loud',
};

it.each(Object.entries(BAD) as [SettingKey, string][])('names %s when it refuses a bad value', (key, value) => {
  expect(settingsError({ [variableOf(key)]: value })).toContain(variableOf(key));
  expect(settingsError({}, [`${flagOf(key)}=${value}`])).toContain(flagOf(key));
});

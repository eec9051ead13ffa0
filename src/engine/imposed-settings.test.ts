import { expect, test } from 'vitest';
import { loadSettings, type Settings } from '../config/load-settings.ts';
import { thisHost } from '../config/this-host.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { imposeRules } from './imposed-settings.ts';

function rules(given: Partial<Settings>): Settings {
  return { ...loadSettings({ ...thisHost(), argv: [], env: {} }), ...given };
}

const BLOCKED = { blockReadsOutsideWorkingDirectories: true, blockWritesOutsideWorkingDirectories: true };
const fenced = rules({ allowedDirs: ['/a', '/b'] });

test('without rules an option not given stays an option not passed', () => {
  const options: SessionOptions = { cwd: '/a', settings: 'some.json' };
  expect(imposeRules(rules({}), options)).toEqual({ options, env: {} });
});

test.each<[string, SessionOptions['settings'], Record<string, unknown>]>([
  ['no settings', undefined, {}],
  ['other settings', { model: 'haiku', permissions: { deny: ['WebFetch'] } }, { deny: ['WebFetch'] }],
  ['settings that would lift it', { permissions: { blockReadsOutsideWorkingDirectories: false } }, {}],
  ['exemptions of a caller’s own', { permissions: { blockReadsExemptPaths: ['/'] } }, {}],
  [
    'the same as text',
    '{"permissions":{"blockWritesOutsideWorkingDirectories":false,"ask":["Bash"]}}',
    { ask: ['Bash'] },
  ],
  ['permissions that are none', { permissions: 'none' }, {}],
])('ALLOWED_DIRS binds file tools, with %s', (_what, settings, kept) => {
  const launch = imposeRules(fenced, { cwd: '/a', ...(settings !== undefined && { settings }) });
  expect(launch.managedSettings).toEqual({ permissions: BLOCKED });
  expect(launch.options).toMatchObject({ cwd: '/a' });
  expect(launch.options.settings).toHaveProperty('permissions', {
    ...kept,
    ...BLOCKED,
    blockReadsExemptPaths: ['/a', '/b'],
  });
});

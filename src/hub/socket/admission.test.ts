import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../config/load-settings.ts';
import type { AttachRequest } from '../../transports/attach/protocol.ts';
import { admit, principalOf, withinSessions } from './admission.ts';

test('a symlink in a client’s allowed directories cannot lead out of the hub’s', () => {
  const home = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'admission-')));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const link = path.join(home, 'link');
  symlinkSync(os.tmpdir(), link);
  const host = { argv: ['--allowed-dirs', home], env: {}, cwd: home, homedir: home, platform: process.platform };
  const settings = loadSettings(host, {}, 'hub');
  const place = { user: 'me', home, configDir: home, stateDir: home };
  const request = (allowedDirs: readonly string[]): AttachRequest => ({
    ...{ kind: 'attach', place, version: '1', toolset: 'compact', cwd: home, given: {}, env: {} },
    rules: { ...settings, allowedDirs },
  });
  expect(admit(request([link]), settings, place)).toMatchObject({ settings: { allowedDirs: [home] } });
  expect(admit(request([path.join(home, 'inner')]), settings, place)).toMatchObject({
    settings: { allowedDirs: [path.join(home, 'inner')] },
  });
});

test.each([
  ['home', 'HOME is / there and /other here'],
  ['configDir', 'CLAUDE_CONFIG_DIR is / there and /other here'],
  ['stateDir', 'the state directory is / there and /other here'],
  ['user', 'the user is me there and /other here'],
] as const)('a client with a different %s is refused, with the reason', (key, why) => {
  const settings = loadSettings({ argv: [], env: {}, cwd: '/', homedir: '/', platform: process.platform }, {}, 'hub');
  const place = { user: 'me', home: '/', configDir: '/', stateDir: '/' };
  const request: AttachRequest = {
    ...{ kind: 'attach', version: '1', toolset: 'compact', cwd: '/', given: {}, env: {}, rules: settings },
    place: { ...place, [key]: '/other' },
  };
  expect(admit(request, settings, place)).toEqual({ why });
});

const hub = loadSettings({ argv: [], env: {}, cwd: '/', homedir: '/', platform: process.platform }, {}, 'hub');

test('a client inside sessions has the rules of all of them, one level deeper than the deepest', () => {
  const careful = { ...hub, approvals: 'human', allowedDirs: ['/work'], depth: 1 } as const;
  const boxed = { ...hub, sandbox: true, allowedDirs: ['/work/inner', '/other'], maxTurns: 3 };
  expect(withinSessions(hub, [])).toEqual(hub);
  expect(withinSessions(hub, [careful])).toEqual({ ...careful, depth: 2 });
  for (const sessions of [
    [careful, boxed],
    [boxed, careful],
  ])
    expect(withinSessions(hub, sessions)).toMatchObject({
      ...{ approvals: 'human', sandbox: true, allowedDirs: ['/work/inner'], maxTurns: 3, depth: 2 },
    });
});

test('a client is the principal of the session that its process belongs to, whatever sessions it names', () => {
  expect(principalOf({ kind: 'outside' }).id).toBe('local');
  expect(principalOf({ kind: 'inside', session: 's1', named: ['s2', 's1'] }).id).toBe('nested:s1');
  expect(principalOf({ kind: 'inside', session: undefined, named: ['s2'] }).id).toMatch(/^nested:[0-9a-f-]{36}$/);
});

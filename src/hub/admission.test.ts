import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../config/load-settings.ts';
import type { AttachRequest } from '../transports/attach/protocol.ts';
import { admit, asPeer, principalOf } from './admission.ts';

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
  expect(admit(request([link]), settings, place, false)).toMatchObject({ settings: { allowedDirs: [home] } });
  expect(admit(request([path.join(home, 'inner')]), settings, place, false)).toMatchObject({
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
  expect(admit(request, settings, place, false)).toEqual({ why });
});

test('a client inside a session is identified by its process, whatever it claims', () => {
  const settings = loadSettings({ argv: [], env: {}, cwd: '/', homedir: '/', platform: process.platform }, {}, 'hub');
  const request = (inside?: string): AttachRequest => ({
    ...{ kind: 'attach', version: '1', toolset: 'compact', cwd: '/', given: {}, env: {}, inside },
    place: { user: 'me', home: '/', configDir: '/', stateDir: '/' },
    rules: { ...settings, depth: 0 },
  });
  const seen = (inside: string | undefined, peer: Parameters<typeof asPeer>[1]): string =>
    principalOf(asPeer(request(inside), peer)).id;
  expect(seen(undefined, { kind: 'outside' })).toBe('local');
  expect(seen('s1', { kind: 'outside' })).toBe('nested:s1');
  expect(seen(undefined, { kind: 'inside', session: 's1' })).toBe('nested:s1');
  expect(seen('s2', { kind: 'inside', session: 's1' })).toBe('nested:s1');
  expect(seen(undefined, { kind: 'inside', session: undefined })).toMatch(/^nested:[0-9a-f-]{36}$/);
});

import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../config/load-settings.ts';
import type { AttachRequest } from '../transports/attach/protocol.ts';
import { admit } from './admission.ts';

test('a link in the directories of a client does not lead out of those of the hub', () => {
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

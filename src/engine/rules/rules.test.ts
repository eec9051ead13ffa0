import { expect, test } from 'vitest';
import type { Settings } from '../../config/load-settings.ts';
import { Rules } from './rules.ts';
import type { EngineServices } from '../ports.ts';

test('a restarted session needs its credentials and proxy variables, but none specific to its editor', () => {
  const services = { baseEnv: { PATH: '/bin', ANTHROPIC_MODEL: 'same' } } as unknown as EngineServices;
  const baseEnv = {
    PATH: '/usr/bin',
    VSCODE_PID: '1',
    TERM: 'dumb',
    ANTHROPIC_MODEL: 'same',
    ANTHROPIC_API_KEY: 'k',
    HTTPS_PROXY: 'http://proxy',
    GITHUB_TOKEN: 't',
    npm_config_cache: 'c',
  };
  const rules = new Rules({ settings: { approvals: 'auto' } as Settings, cwd: '/', baseEnv }, services);
  expect(rules.ownVariables).toEqual(['ANTHROPIC_API_KEY', 'HTTPS_PROXY', 'GITHUB_TOKEN']);
});

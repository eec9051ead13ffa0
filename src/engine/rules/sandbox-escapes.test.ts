import { expect, test } from 'vitest';
import type { SessionOptions } from '../../schema/session-options.ts';
import { checkSandboxEscapes } from './sandbox-escapes.ts';

const helper = { description: 'helps', prompt: 'help' };

function check({ settings = {}, ...options }: SessionOptions): void {
  checkSandboxEscapes(options, typeof settings === 'string' ? {} : settings, '/work');
}

test.each<[string, SessionOptions]>([
  ['sandbox: enabled', { sandbox: { enabled: false } }],
  ['sandbox: excludedCommands', { sandbox: { excludedCommands: ['docker'] } }],
  ['sandbox: network', { sandbox: { network: { allowedDomains: ['example.org'] } } }],
  ['sandbox: filesystem', { settings: { sandbox: { filesystem: { allowWrite: ['/'] } } } }],
  ['sandbox: somethingNew', { sandbox: { somethingNew: true } }],
  ['settings: hooks', { settings: { hooks: {} } }],
  ['settings: apiKeyHelper', { settings: { apiKeyHelper: 'cat' } }],
  ['settings: somethingNew', { settings: { somethingNew: true } }],
  ['env: PATH', { env: { PATH: '.' } }],
  ['env: Path', { env: { Path: '.' } }],
  ['env: CLAUDE_CONFIG_DIR', { settings: { env: { CLAUDE_CONFIG_DIR: '.' } } }],
  ['env: LD_PRELOAD', { env: { LD_PRELOAD: './x.so' } }],
  ['env: BASH_ENV', { env: { BASH_ENV: './x.sh' } }],
  ['env: GIT_CONFIG_COUNT', { env: { GIT_CONFIG_COUNT: '1' } }],
  ['env: NODE_OPTIONS', { env: { NODE_OPTIONS: '--require=./x' } }],
  ['env: https_proxy', { env: { https_proxy: 'http://elsewhere' } }],
  ['mcpServers', { mcpServers: { s: { command: 'cat' } } }],
  ['plugins', { plugins: [{ type: 'local', path: '.' }] }],
  ['pathToClaudeCodeExecutable', { pathToClaudeCodeExecutable: 'claude' }],
  ['agents: a', { agents: { a: { ...helper, mcpServers: [] } } }],
  ['debugFile', { debugFile: '../debug.log' }],
  ['Edit(//etc/**)', { allowedTools: ['Edit(//etc/**)'] }],
  ['Read(~/.ssh/**)', { settings: { permissions: { allow: ['Read(~/.ssh/**)'] } } }],
  ['Edit(../**)', { allowedTools: ['Edit(../**)'] }],
  ['WebFetch(domain:example.org)', { allowedTools: ['WebFetch(domain:example.org)'] }],
])('a caller may not ask for %s in the sandbox', (what, options) => {
  expect(() => check(options)).toThrow(`${what} `);
});

test.each<[string, SessionOptions]>([
  ['nothing', {}],
  [
    'a tighter sandbox',
    { sandbox: { enabled: true, allowUnsandboxedCommands: false, network: { deniedDomains: ['x'] } } },
  ],
  ['commands allowed in the sandbox', { sandbox: { autoAllowBashIfSandboxed: true } }],
  ['its own variables', { env: { NODE_ENV: 'test', API_TOKEN: 'x', ANTHROPIC_MODEL: 'x' } }],
  ['rules inside the project', { allowedTools: ['Bash', 'Edit', 'Edit(src/**)', 'Bash(git diff *)'] }],
  ['settings that run nothing', { settings: { model: 'haiku', permissions: { deny: ['WebFetch'] } } }],
  ['an agent without programs', { agents: { a: helper } }],
  ['a debug file inside', { debugFile: 'debug.log' }],
  ['empty lists', { mcpServers: {}, plugins: [] }],
])('a caller may ask for %s', (_what, options) => {
  expect(() => check(options)).not.toThrow();
});

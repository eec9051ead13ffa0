import { expect, test } from 'vitest';
import type { PermissionUpdate } from '../../driver/permission-ask.ts';
import { alwaysOffer, exactCall, type AlwaysOffer } from './always.ts';

const rule = (ruleContent?: string, toolName = 'Bash'): PermissionUpdate => ({
  type: 'addRules',
  behavior: 'allow',
  destination: 'localSettings',
  rules: [{ toolName, ...(ruleContent !== undefined && { ruleContent }) }],
});
const mode: PermissionUpdate = { type: 'setMode', mode: 'acceptEdits', destination: 'session' };

const offer = (suggestions: PermissionUpdate[], onceOnly = false): AlwaysOffer =>
  alwaysOffer({ toolName: 'Bash', input: { command: 'any' }, suggestions, onceOnly });

test.each(['touch made.txt', 'touch made.txt *', 'mkdir -p src/parts', 'cp a *', 'ls -la /etc'])(
  'Bash(%s) runs nothing else and is offered as a rule',
  (content) => {
    expect(offer([rule(content), mode])).toEqual({ kind: 'rules', rules: [rule(content)] });
  },
);

test.each([
  // What Claude Code suggests for commands like these.
  'sh',
  'bash',
  'sh -c "touch b"',
  'xargs touch',
  'sudo touch a',
  'env FOO=1 touch a',
  'FOO=1 touch a',
  'nohup touch a',
  'timeout 5 touch a',
  'command touch a',
  'curl http://127.0.0.1/x',
  'wget http://127.0.0.1/x',
  'ssh host *',
  'docker run *',
  'npx tool *',
  'npm test *',
  'npm run *',
  'npm install *',
  'make all *',
  'go test *',
  'cargo build *',
  'tar xf *',
  'vim notes *',
  'python3 -c "print(1)"',
  'node script.js',
  './run.sh',
  'git add *',
  'git add:*',
  'git push *',
  'git commit *',
  'git commit:*',
  'git -c core.pager=x log',
  'if true; then touch a; fi',
  // What it might suggest one day.
  'touch a; sh',
  'touch a && sh',
  'touch $(sh)',
  'touch\nsh',
  'touch*',
  '*',
  'git *',
  '/tmp/touch a',
  '',
  undefined,
])('Bash(%s) could run anything, so the exact command is offered', (content) => {
  expect(offer([rule(content)])).toEqual({ kind: 'exact' });
  expect(offer([rule('touch a *'), rule(content)])).toEqual({ kind: 'exact' });
});

test('commands of another shell are not looked up in the table for Bash', () => {
  expect(offer([rule('cat notes.txt *', 'PowerShell')])).toEqual({ kind: 'exact' });
});

test('rules of other tools are offered as suggested', () => {
  const rules = [rule('//etc/**', 'Read'), rule('domain:example.com', 'WebFetch'), rule(undefined, 'mcp__shop__order')];
  expect(offer(rules)).toEqual({ kind: 'rules', rules });
});

test('nothing is offered without a rule that allows, or where Claude Code offers it only once', () => {
  expect(offer([])).toEqual({ kind: 'nothing' });
  expect(offer([mode])).toEqual({ kind: 'nothing' });
  expect(offer([{ ...rule('touch a'), behavior: 'deny' } as PermissionUpdate])).toEqual({ kind: 'nothing' });
  expect(offer([rule('sh')], true)).toEqual({ kind: 'nothing' });
});

test('a call is the same only if everything but its description is', () => {
  const input = { command: 'npm test', timeout: 1000 };
  const call = exactCall('Bash', input);
  expect(exactCall('Bash', { timeout: 1000, command: 'npm test', description: 'run them' })).toBe(call);
  expect(exactCall('Bash', { ...input, command: 'npm test ' })).not.toBe(call);
  expect(exactCall('Bash', { ...input, run_in_background: true })).not.toBe(call);
  expect(exactCall('Bash', { ...input, dangerouslyDisableSandbox: true })).not.toBe(call);
  expect(exactCall('PowerShell', input)).not.toBe(call);
});

import { homedir } from 'node:os';
import { expect, test } from 'vitest';
import { refusingRule } from './tool-rules.ts';

const bash = (command: string) => ({ toolName: 'Bash', input: { command } });
const file = (toolName: string, file_path: string) => ({ toolName, input: { file_path } });

test.each([
  ['Bash', bash('ls')],
  ['Bash(*)', bash('ls')],
  ['Bash(rm *)', bash('rm')],
  ['Bash(rm *)', bash('rm -rf x')],
  ['Bash(rm:*)', bash('rm -rf x')],
  ['Bash(git push --force *)', bash('git push --force origin')],
  ['Bash(npm run build)', bash(' npm run build ')],
  ['Bash(* --force)', bash('git push --force')],
  ['Bash(rm *)', bash('cd / && rm -rf x')],
  ['Bash(rm *)', bash('true; rm x')],
  ['Bash(rm *)', bash('find . | xargs rm x')],
  ['Bash(rm *)', bash('echo $(rm x)')],
  ['Bash(rm *)', bash('echo `rm x`')],
  ['Bash(rm *)', bash('A=1 B=2 rm x')],
  ['Bash(rm *)', bash('sudo rm x')],
  ['Bash(rm *)', bash('if true; then rm x; fi')],
  ['Bash(rm *)', bash('\\rm x')],
  ['Edit(src/**)', file('Edit', '/work/src/a/b.ts')],
  ['Edit(src/**)', file('Edit', 'src/b.ts')],
  ['Edit(src/**)', file('Write', '/work/src/b.ts')],
  ['Edit(src)', file('Edit', '/work/lib/src/b.ts')],
  ['Edit(./src/)', file('Edit', '/work/src/b.ts')],
  ['Read(.env)', file('Read', '/work/deep/down/.env')],
  ['Read(*.pem)', file('Read', '/work/keys/a.pem')],
  ['Read(**/*.pem)', file('Read', '/work/a.pem')],
  ['Read(//etc/**)', file('Read', '/etc/passwd')],
  ['Read(//etc/**)', file('Read', '/work/../etc/passwd')],
  ['Read(~/.ssh/**)', file('Read', `${homedir()}/.ssh/id`)],
  ['Read(secret/**)', { toolName: 'Grep', input: { pattern: 'x', path: '/work/secret/a' } }],
  ['WebFetch(domain:example.com)', { toolName: 'WebFetch', input: { url: 'https://example.com/a?b' } }],
  ['WebFetch(domain:*.example.com)', { toolName: 'WebFetch', input: { url: 'https://www.example.com/' } }],
  ['mcp__notes', { toolName: 'mcp__notes__write', input: {} }],
  ['mcp__notes__*', { toolName: 'mcp__notes__write', input: {} }],
  ['Agent(Explore)', { toolName: 'Agent', input: { subagent_type: 'Explore' } }],
  ['Task(Explore)', { toolName: 'Agent', input: { subagent_type: 'Explore' } }],
])('%s refuses %j', (rule, call) => {
  expect(refusingRule(['Other', rule], { ...call, cwd: '/work' })).toBe(rule);
});

test.each([
  ['Bash', file('Edit', '/work/a')],
  ['Bash(rm *)', bash('rmdir x')],
  ['Bash(rm *)', bash('echo rm')],
  ['Bash(npm run build)', bash('npm run build:all')],
  ['Edit', file('Write', '/work/a')],
  ['Edit(src/**)', file('Edit', '/work/test/a.ts')],
  ['Edit(src/**)', file('Edit', '/other/src/a.ts')],
  ['Edit(src/**)', file('Read', '/work/src/a.ts')],
  ['Edit(src/*.ts)', file('Edit', '/work/src/deep/a.ts')],
  ['Read(//etc/**)', file('Read', '/work/etc/passwd')],
  ['WebFetch(domain:example.com)', { toolName: 'WebFetch', input: { url: 'https://example.com.evil.org/' } }],
  ['mcp__notes', { toolName: 'mcp__notesmore__write', input: {} }],
  ['Bash(rm *)', { toolName: 'Bash', input: {} }],
])('%s does not refuse %j', (rule, call) => {
  expect(refusingRule([rule], { ...call, cwd: '/work' })).toBeUndefined();
});

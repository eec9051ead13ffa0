// Each call of the inspector's command line is a server of its own, so the task is one call: approved in advance, waited for.
import { spawnSync } from 'node:child_process';
import { objectOf, project, report, server } from './task.mjs';

const env = Object.entries(server.env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
const inspect = (...args) =>
  spawnSync(
    process.execPath,
    ['node_modules/.bin/mcp-inspector', '--cli', ...env, server.command, ...server.args, ...args],
    { encoding: 'utf8' },
  );
const listed = inspect('--method', 'tools/list', '--strict');
const called = inspect(
  '--method',
  'tools/call',
  '--tool-name',
  'claude_code',
  '--tool-arg',
  'prompt=interop single call',
  '--tool-arg',
  `cwd=${project}`,
  '--tool-arg',
  'waitMs=20000',
  '--tool-arg',
  'allowedTools=["Bash"]',
);
const lint =
  /(\d+) errors?, (\d+) warnings?/.exec(listed.stderr)?.[0] ??
  (listed.status === 0 ? 'no findings' : listed.stderr.slice(-300));
const state = called.status === 0 ? objectOf(JSON.parse(called.stdout)) : { status: called.stderr.slice(-300) };
report({
  approval: 'in advance',
  calls: 1,
  status: state.status,
  result: state.result?.result,
  note: `schema lint: ${lint}`,
});

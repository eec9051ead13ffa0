import { expect, test } from 'vitest';
import { loadSettings } from '../../config/load-settings.ts';
import { withinEnclosingRules } from './serve.ts';

const host = { env: {}, cwd: '/', homedir: '/', platform: process.platform };
const own = loadSettings({ ...host, argv: ['--max-depth', '50', '--max-turns', '9'] });

test('a server inside sessions has their rules and depth, whatever its own variables say', () => {
  const inner = { CLAUDE_CODE_MCP_DEPTH: '2/3', CLAUDE_CODE_MCP_APPROVALS: 'human' };
  const outer = { CLAUDE_CODE_MCP_DEPTH: '1/3', CLAUDE_CODE_MCP_ALLOWED_DIRS: '/', CLAUDE_CODE_MCP_MAX_TURNS: '4' };
  expect(withinEnclosingRules(own, host, [{}, inner, outer])).toEqual({
    ...own,
    ...{ approvals: 'human', allowedDirs: ['/'], maxTurns: 4, depth: 2, maxDepth: 2 },
  });
});

test('variables of processes outside any session do not count', () => {
  const terminal = { CLAUDE_CODE_MCP_APPROVALS: 'human', CLAUDE_CODE_MCP_MAX_TURNS: 'not a number' };
  expect(withinEnclosingRules(own, host, [terminal])).toBe(own);
});

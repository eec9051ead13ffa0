import { expect, it } from 'vitest';
import { misspeltVariables } from '../../src/config/load-settings.ts';

it('finds a misspelt setting', () => {
  expect(misspeltVariables({ CLAUDE_CODE_MCP_ALLOWED_DIR: '/w' })).toEqual([
    { name: 'CLAUDE_CODE_MCP_ALLOWED_DIR', nearest: 'CLAUDE_CODE_MCP_ALLOWED_DIRS' },
  ]);
});

it('finds APPROVALS without its prefix, which would protect nobody', () => {
  const found = [{ name: 'APPROVALS', nearest: 'CLAUDE_CODE_MCP_APPROVALS' }];
  expect(misspeltVariables({ APPROVALS: 'human' })).toEqual(found);
  expect(misspeltVariables({ APPROVALS: 'human', CLAUDE_CODE_MCP_APPROVALS: 'human' })).toEqual([]);
  expect(misspeltVariables({ APPROVALS: '3' })).toEqual([]);
});

it('ignores settings, internal variables and those of Claude Code', () => {
  const env = Object.fromEntries(
    [
      'MAX_SESSIONS OWNER SESSION DEPTH',
      // All names with this prefix in Claude Code 2.1.325.
      'ALLOWLIST_ENV ALWAYS_LOAD_JOIN_BEFORE_INPUT APPS_HOST APPS_NO_TOOL_ROUTE AUTO_BACKGROUND_MS CONNECTOR_PREWAIT_MS',
      'MEMORY_CGROUP NO_REDIAL_AFTER_POLICY_REFUSAL PREWAIT_SERVERS PREWAIT_SERVERS_MS REGISTRY_FETCH_AT_STARTUP SERVER_NAME',
      'SERVER_URL SERVE_AUTH_TOKEN SERVE_ENABLED_PLUGINS SERVE_SETTINGS SERVE_TOOL_OUTPUT SERVE_WORKSPACE_ROOT',
      'SKIP_UNCHANGED_RELIST STARTUP_WAIT_MS TOOL_IDLE_TIMEOUT',
    ]
      .join(' ')
      .split(' ')
      .map((name) => [`CLAUDE_CODE_MCP_${name}`, '1']),
  );
  expect(misspeltVariables(env)).toEqual([]);
});

import { expect, it } from 'vitest';
import { childEnvironment, isReservedVariable } from '../../src/config/child-environment.ts';

it('passes the environment on without the server’s secrets', () => {
  const env = {
    HOME: '/h',
    ANTHROPIC_API_KEY: 'k',
    CLAUDE_CODE_MCP_RESUME_SECRET: 's',
    CLAUDE_CODE_MCP_ALLOWED_DIRS: '/w',
    EMPTY: '',
    GONE: undefined,
  };
  expect(childEnvironment(env, {}, 'linux')).toEqual({
    HOME: '/h',
    ANTHROPIC_API_KEY: 'k',
    CLAUDE_CODE_MCP_ALLOWED_DIRS: '/w',
    EMPTY: '',
  });
});

/** Seen with Claude Code 2.1.325 in the environment of an MCP server, a Bash command and a hook. */
const SEEN = {
  AI_AGENT: 'claude-code_2-1-325_harness',
  CLAUDECODE: '1',
  CLAUDE_CODE_CHILD_SESSION: '1',
  CLAUDE_CODE_ENTRYPOINT: 'sdk-cli',
  CLAUDE_CODE_EXECPATH: '/claude',
  CLAUDE_CODE_MESSAGING_SOCKET: '/tmp/cc-socks/1.sock',
  CLAUDE_CODE_MESSAGING_TOKEN: 'token',
  CLAUDE_CODE_SESSION_ATTENDED: '0',
  CLAUDE_CODE_SESSION_ID: 'id',
  CLAUDE_CODE_SSE_PORT: '1',
  CLAUDE_EFFORT: 'medium',
  CLAUDE_PID: '1',
  CLAUDE_PLUGIN_ROOT: '/plugin',
  CLAUDE_PROJECT_DIR: '/project',
  CLAUDE_CODE_SDK_HAS_OAUTH_REFRESH: '1',
};

it('hides an outer Claude Code', () => {
  expect(childEnvironment({ PATH: '/bin', ...SEEN }, {}, 'linux')).toEqual({ PATH: '/bin' });
});

it("keeps the user's own choices for Claude Code", () => {
  const env = {
    CLAUDE_CONFIG_DIR: '/c',
    CLAUDE_CODE_USE_BEDROCK: '1',
    CLAUDE_CODE_OAUTH_TOKEN: 't',
    CLAUDE_ENV_FILE: '/e',
    ANTHROPIC_MODEL: 'm',
  };
  expect(childEnvironment(env, {}, 'linux')).toEqual(env);
});

it('lets overlay values win and removes variables set to undefined', () => {
  const overlay = { A: 'new', B: undefined, C: 'c', CLAUDE_CODE_ENTRYPOINT: 'mine' };
  expect(childEnvironment({ A: 'old', B: 'b' }, overlay, 'linux')).toEqual({
    A: 'new',
    C: 'c',
    CLAUDE_CODE_ENTRYPOINT: 'mine',
  });
});

it('does not let an overlay set or remove variables of the operator or the driver', () => {
  const env = { CLAUDE_CODE_MCP_ALLOWED_DIRS: '/w', CLAUDE_CODE_MCP_OWNER: 'outer', CLAUDE_CODE_MCP_DEPTH: '1' };
  const overlay = {
    CLAUDE_CODE_MCP_ALLOWED_DIRS: undefined,
    CLAUDE_CODE_MCP_ALLOW_BYPASS: '1',
    CLAUDE_CODE_MCP_RESUME_SECRET: 's',
    CLAUDE_CODE_MCP_OWNER: 'x',
    CLAUDE_CODE_MCP_SESSION: 'x',
    claude_code_mcp_depth: '0',
  };
  expect(childEnvironment(env, overlay, 'linux')).toEqual({ CLAUDE_CODE_MCP_ALLOWED_DIRS: '/w' });
  expect(Object.keys(overlay).every(isReservedVariable)).toBe(true);
  expect(isReservedVariable('CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT')).toBe(false);
});

it('ignores the case of variable names on Windows only', () => {
  expect(childEnvironment({ Path: 'a' }, { PATH: 'b' }, 'win32')).toEqual({ PATH: 'b' });
  expect(childEnvironment({ Path: 'a' }, { PATH: undefined }, 'win32')).toEqual({});
  expect(childEnvironment({ Path: 'a' }, { PATH: 'b' }, 'linux')).toEqual({ Path: 'a', PATH: 'b' });
});

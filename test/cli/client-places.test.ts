import { describe, expect, test } from 'vitest';
import { CLIENTS, type ClientName, type InstallClient } from '../../src/cli/install/clients.ts';

describe('the configuration file of', () => {
  const hosts = {
    mac: { platform: 'darwin', homedir: '/Users/me', cwd: '/', env: {} },
    windows: {
      platform: 'win32',
      homedir: 'C:\\Users\\me',
      cwd: 'C:\\',
      env: { APPDATA: 'C:\\Users\\me\\AppData\\Roaming' },
    },
    moved: {
      platform: 'linux',
      homedir: '/home/me',
      cwd: '/',
      env: { CLAUDE_CONFIG_DIR: '/c', CODEX_HOME: '/x', COPILOT_HOME: '/p', XDG_CONFIG_HOME: '/g' },
    },
  } as const;

  test.each<[ClientName, mac: string, windows: string, moved: string]>([
    ['claude-code', '/Users/me/.claude.json', 'C:\\Users\\me\\.claude.json', '/c/.claude.json'],
    [
      'claude-desktop',
      '/Users/me/Library/Application Support/Claude/claude_desktop_config.json',
      'C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json',
      '/g/Claude/claude_desktop_config.json',
    ],
    ['cursor', '/Users/me/.cursor/mcp.json', 'C:\\Users\\me\\.cursor\\mcp.json', '/home/me/.cursor/mcp.json'],
    [
      'vscode',
      '/Users/me/Library/Application Support/Code/User/mcp.json',
      'C:\\Users\\me\\AppData\\Roaming\\Code\\User\\mcp.json',
      '/g/Code/User/mcp.json',
    ],
    ['codex', '/Users/me/.codex/config.toml', 'C:\\Users\\me\\.codex\\config.toml', '/x/config.toml'],
    [
      'gemini',
      '/Users/me/.gemini/settings.json',
      'C:\\Users\\me\\.gemini\\settings.json',
      '/home/me/.gemini/settings.json',
    ],
    ['copilot', '/Users/me/.copilot/mcp-config.json', 'C:\\Users\\me\\.copilot\\mcp-config.json', '/p/mcp-config.json'],
    [
      'opencode',
      '/Users/me/.config/opencode/opencode.json',
      'C:\\Users\\me\\.config\\opencode\\opencode.json',
      '/g/opencode/opencode.json',
    ],
  ])('%s', (name, mac, windows, moved) => {
    const client: InstallClient = CLIENTS[name];
    expect(client.file(hosts.mac)).toBe(mac);
    expect(client.file(hosts.windows)).toBe(windows);
    expect(client.file(hosts.moved)).toBe(moved);
  });
});

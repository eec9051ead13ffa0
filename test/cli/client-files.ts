/** Realistic configuration files: other servers, comments, settings of all kinds. */

import type { ClientName } from '../../src/cli/install/clients.ts';

export interface ClientFile {
  /** Below the home directory, on Linux. */
  readonly path: string;
  readonly text: string;
}

export const CLIENT_FILES: Readonly<Record<ClientName, ClientFile>> = {
  'claude-code': {
    path: '.claude.json',
    text: `{
  "numStartups": 41,
  "installMethod": "native",
  "autoUpdates": false,
  "tipsHistory": {
    "new-user-warmup": 1,
    "shift-enter": 27
  },
  "projects": {
    "/home/somebody/shop": {
      "allowedTools": [],
      "mcpServers": {
        "claude-code": {
          "type": "http",
          "url": "https://example.invalid/another-one-of-this-name"
        }
      },
      "hasTrustDialogAccepted": true
    }
  },
  "mcpServers": {
    "playwright": {
      "type": "stdio",
      "command": "npx",
      "args": [
        "@playwright/mcp@latest"
      ],
      "env": {}
    }
  },
  "userID": "0123456789abcdef"
}
`,
  },
  'claude-desktop': {
    path: '.config/Claude/claude_desktop_config.json',
    text: `{
    "globalShortcut": "Ctrl+Space",
    "mcpServers": {
        "filesystem": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/somebody"]
        }
    },
    "preferences": { "menuBarEnabled": true }
}`,
  },
  cursor: {
    path: '.cursor/mcp.json',
    text: `{
  "mcpServers": {
    "github": {
      "url": "https://api.example.invalid/mcp/",
      "headers": { "Authorization": "Bearer \${env:GITHUB_TOKEN}" }
    }
  }
}
`,
  },
  vscode: {
    path: '.config/Code/User/mcp.json',
    text: `{
\t// The servers of this profile
\t"servers": {
\t\t"memory": {
\t\t\t"type": "stdio",
\t\t\t"command": "npx",
\t\t\t"args": ["-y", "@modelcontextprotocol/server-memory"], /* remembers */
\t\t}, // keep
\t},
\t"inputs": [
\t\t{ "type": "promptString", "id": "key", "description": "A key // not a comment", "password": true },
\t],
}
`,
  },
  codex: {
    path: '.codex/config.toml',
    text: `model = "gpt-5.5" # the usual one
approval_policy = "on-request"
notify = [
  "python3",
  "[not a table]",
]

[projects."/home/somebody/shop"]
trust_level = "trusted"

# Looks things up
[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]

[mcp_servers.context7.env]
TOKEN = "x"

[profiles.deep]
model_reasoning_effort = "high"
instructions = """
[mcp_servers.claude-code]
is only a line of a text
"""
`,
  },
  gemini: {
    path: '.gemini/settings.json',
    text: `{
  "theme": "Dracula",
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  // mine
  "mcpServers": {
    "git": { "command": "uvx", "args": ["mcp-server-git"], "trust": false }
  }
}
`,
  },
  copilot: {
    path: '.copilot/mcp-config.json',
    text: `{
  "mcpServers": {
    "docs": {
      "type": "http",
      "url": "https://docs.example.invalid/mcp",
      "headers": {},
      "tools": ["*"]
    }
  }
}
`,
  },
  opencode: {
    path: '.config/opencode/opencode.jsonc',
    text: `{
  "$schema": "https://opencode.ai/config.json",
  "model": "anthropic/claude-sonnet-5-5",
  "mcp": {
    // Everything
    "everything": {
      "type": "local",
      "command": ["npx", "-y", "@modelcontextprotocol/server-everything"],
      "enabled": false,
    },
  },
  "autoupdate": "notify",
}
`,
  },
};

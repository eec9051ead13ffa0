/** Assembles the MCPB bundle: the server and the Agent SDK, without the Claude Code binary. */

import { cpSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const SDK = 'node_modules/@anthropic-ai/claude-agent-sdk';

/** The binaries are separate packages next to the SDK, so they are simply not copied. */
export function stageBundle(root: string, target: string): void {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  const isNeeded = (file: string): boolean => !/\.(map|d\.m?ts)$/.test(file);
  for (const part of ['dist', SDK, 'package.json', 'LICENSE']) {
    cpSync(path.join(root, part), path.join(target, part), { recursive: true, dereference: true, filter: isNeeded });
  }
  cpSync(path.join(root, 'packaging', 'mcpb-manifest.json'), path.join(target, 'manifest.json'));
}

#!/usr/bin/env node
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { run } from '../cli/run.ts';
import { isSupportedNode, NODE_RANGE } from '../config/node-version.ts';

if (!isSupportedNode(process.versions.node)) {
  process.stderr.write(`claude-code-mcp needs Node ${NODE_RANGE}; this is ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  process.exitCode = await run({
    argv: process.argv.slice(2),
    env: process.env,
    cwd: process.cwd(),
    homedir: os.homedir(),
    platform: process.platform,
    program: fileURLToPath(import.meta.url),
  });
}

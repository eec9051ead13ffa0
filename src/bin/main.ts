import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { run } from '../cli/run.ts';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const supported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;

if (!supported) {
  process.stderr.write(`claude-code-mcp needs Node ^20.19 or >=22.12; this is ${process.versions.node}.\n`);
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

#!/usr/bin/env node
// Not `node:process`: importing it creates all three standard streams, which delays startup.
import module from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../cli/run.ts';
import { defaultStateDir, thisHost, type Host } from '../config/host.ts';
import { withHiddenSecrets } from '../config/secret-variables.ts';
import { isSupportedNode, NODE_RANGE } from '../platform/node-version.ts';

if (!isSupportedNode(process.versions.node)) {
  process.stderr.write(`claude-code-mcp requires Node ${NODE_RANGE}; this is ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  const argv = process.argv.slice(2);
  process.exitCode = await run(() => {
    const host = withHiddenSecrets(thisHost(), argv);
    keepCompiledCode(host);
    return { ...host, argv, program: fileURLToPath(import.meta.url) };
  });
}

/** Node 20 has no such cache. Not in the shared temporary directory, where another user could put their own code. */
function keepCompiledCode(host: Host): void {
  const { enableCompileCache } = module as { enableCompileCache?: (directory: string) => unknown };
  enableCompileCache?.(path.join(defaultStateDir(host), 'compiled'));
}

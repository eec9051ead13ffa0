// Runs scripts/<name>.ts on any supported Node: `node scripts/run.mjs <name> [arguments]`.
// Node 20 cannot run TypeScript, so the scripts are bundled into .build/ first.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildIfStale } from './build-if-stale.mjs';

const [name = ''] = process.argv.splice(2, 1);
if (!existsSync(fileURLToPath(new URL(`${name}.ts`, import.meta.url)))) {
  console.error(`No script scripts/${name}.ts`);
  process.exit(2);
}

await buildIfStale('dist');
await buildIfStale('scripts');

const built = new URL(`../.build/${name}.mjs`, import.meta.url);
process.argv[1] = fileURLToPath(built);
await import(built.href);

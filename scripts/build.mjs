// Builds `dist`: `node scripts/build.mjs [--config <file>] [--quiet] [--watch]`. Uses tsdown's function instead of its command,
// which tells everybody on Node 20 that it is deprecated; the version that we pin supports it.
import { parseArgs } from 'node:util';
import { build } from 'tsdown';

const { config, quiet, watch } = parseArgs({
  options: { config: { type: 'string' }, quiet: { type: 'boolean' }, watch: { type: 'boolean' } },
}).values;

try {
  await build({ ...(config && { config }), ...(watch && { watch }), logLevel: quiet ? 'warn' : 'info' });
} catch (error) {
  console.error(error);
  process.exit(1);
}

/** Runs the demo and saves its output as docs/session.svg: `node scripts/run.mjs record-session`. `--check` records nothing. */

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { terminalPicture } from './docs/terminal-picture.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const TITLE = 'A session: npm run demo';

if (process.argv.includes('--check')) terminalPicture('$ npm run demo', TITLE);
else await record();

async function record(): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, [path.join(root, 'dist', 'main.mjs'), 'demo'], {
    env: { ...process.env, NO_COLOR: '1' },
  });
  // Without the times, which change with every run and would be noise in the history.
  const steady = stdout.replace(/, [\d.]+ s of Claude, [\d.]+ s in total/, '');
  await writeFile(path.join(root, 'docs', 'session.svg'), terminalPicture(`$ npm run demo\n\n${steady}`, TITLE));
  console.log('wrote docs/session.svg');
}

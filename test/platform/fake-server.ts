import { spawn } from 'node:child_process';
import { markerEnv } from '../../src/platform/system.ts';
import { startWatchdog } from '../../src/platform/watchdog.ts';

/** A server with one session, whose process runs the given script. Bundled and run by watchdog.test.ts. */
const [ownerId = '', runId = '', script = '', mode = ''] = process.argv.slice(2);
const watchdog = startWatchdog({ ownerId });
const session = spawn('/bin/sh', ['-c', script], {
  env: { PATH: '/usr/bin:/bin', ...markerEnv(ownerId, runId) },
  stdio: 'ignore',
});
process.stdout.write(`${JSON.stringify({ watchdog: watchdog.pid, session: session.pid })}\n`);
if (mode === 'idle') {
  // Nothing left to do: the watchdog must not keep this process alive.
  session.unref();
} else if (mode === 'ignore-stdin') {
  // Ignores the end of its input, so that only its watchdog can clean up.
  setInterval(() => undefined, 60_000);
} else {
  process.stdin.resume();
  process.stdin.on('end', () => void watchdog.stop().then(() => process.exit(0)));
}

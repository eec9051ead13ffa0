import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ProcessOwner } from '../../src/platform/process-owner.ts';
import { findMarked, startTimeOf } from '../../src/platform/processes.ts';
import { watchdogCommand } from '../../src/platform/watchdog-script.ts';
import { startWatchdog } from '../../src/platform/watchdog.ts';
import { bundle } from '../harness/bundle.ts';
import {
  alive,
  commandOf,
  newOwner,
  onCleanup,
  start,
  startInnocent,
  startTree,
  tempDir,
  TREE,
  TREE_SIZE,
  until,
} from './support.ts';

let bundleDir = '';
let program = '';

beforeAll(async () => {
  bundleDir = mkdtempSync(join(tmpdir(), 'fake-server-'));
  program = await bundle(fileURLToPath(new URL('fake-server.ts', import.meta.url)), bundleDir);
}, 60_000);

afterAll(() => {
  rmSync(bundleDir, { recursive: true, force: true });
});

interface FakeServer {
  process: ChildProcess;
  watchdog: number;
  session: number;
}

async function startServer(owner: string, script = TREE, mode = 'serve'): Promise<FakeServer> {
  const server = spawn(process.execPath, [program, owner, randomUUID(), script, mode], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  onCleanup(() => server.kill('SIGKILL'));
  const [line] = (await once(server.stdout, 'data')) as [Buffer];
  const { watchdog, session } = JSON.parse(line.toString()) as { watchdog: number; session: number };
  return { process: server, watchdog, session };
}

async function allGone(owner: string, watchdog: number): Promise<boolean> {
  return !(await alive(watchdog)) && (await findMarked({ owner })).length === 0;
}

describe('watchdog', () => {
  it('ends everything, including itself, when the server is killed', async () => {
    const owner = newOwner();
    const innocent = startInnocent();
    const server = await startServer(owner);
    await until('the tree is complete', async () => (await findMarked({ owner })).length === TREE_SIZE);
    server.process.kill('SIGKILL');
    await until('everything has exited', () => allGone(owner, server.watchdog));
    expect(await alive(innocent.pid)).toBe(true);
  });

  it('survives the signals a terminal sends to the group, and still does its job', async () => {
    const owner = newOwner();
    const server = await startServer(owner, 'exec sleep 600');
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.kill(server.watchdog, signal);
    process.kill(-Number(server.process.pid), 'SIGKILL');
    await until('everything has exited', () => allGone(owner, server.watchdog));
  });

  it('exits without ending anything when the server exits cleanly', async () => {
    const owner = newOwner();
    const server = await startServer(owner, 'exec sleep 600');
    server.process.stdin?.end();
    await once(server.process, 'exit');
    await until('it has exited', async () => !(await alive(server.watchdog)));
    expect(await alive(server.session)).toBe(true);
  });

  it('does not keep the server running', async () => {
    const server = await startServer(newOwner(), 'exec sleep 600', 'idle');
    await once(server.process, 'exit');
    await until('everything has exited', async () => !(await alive(server.watchdog)) && !(await alive(server.session)));
  });

  it('lets a nested server’s own watchdog clean up when the outer server is killed', async () => {
    const [outer, inner] = [newOwner(), newOwner()];
    const nested = `${process.execPath} ${program} ${inner} ${randomUUID()} 'trap "" TERM; while :; do sleep 600; done' ignore-stdin`;
    const server = await startServer(outer, `sleep 600 | ${nested}`);
    await until('the inner session has started', async () => (await findMarked({ owner: inner })).length === 2);
    server.process.kill('SIGKILL');
    await until(
      'both have exited',
      async () => (await allGone(outer, server.watchdog)) && (await findMarked({ owner: inner })).length === 0,
    );
  });

  it('has no marker and uses little memory', async () => {
    const owner = newOwner();
    const watchdog = startWatchdog({ ownerId: owner });
    const pid = Number(watchdog.pid);
    await until('it is running', () => commandOf(pid).startsWith('/bin/sh'));
    expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).not.toContain('CLAUDE_CODE_MCP');
    expect(commandOf(pid)).not.toContain(owner);
    expect(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])).toBeLessThan(6_000);
    await Promise.all([watchdog.stop(), watchdog.stop()]);
    expect(await alive(pid)).toBe(false);
  });

  it('is restarted when it is killed, and reports a problem after three times', async () => {
    const problems: string[] = [];
    const watchdog = startWatchdog({ ownerId: newOwner(), onProblem: (problem) => problems.push(problem) });
    const seen = new Set<number | undefined>();
    for (let times = 0; times < 3; times++) {
      await until('it has been restarted', () => !seen.has(watchdog.pid));
      seen.add(watchdog.pid);
      process.kill(Number(watchdog.pid), 'SIGKILL');
    }
    await until('it gives up', () => problems.length === 1);
    expect(problems[0]).toContain('SIGKILL');
    await watchdog.stop();
  });

  it('ends the runs it watches when their time is not extended, and no others', async () => {
    const [owner, lent, own] = [newOwner(), randomUUID(), randomUUID()];
    for (const run of [lent, own]) await startTree(owner, run);
    const watchdog = startWatchdog({ ownerId: owner });
    onCleanup(() => watchdog.stop());
    const left = async (run: string): Promise<number> => (await findMarked({ owner, run })).length;
    watchdog.watch(60, [lent, own]);
    watchdog.watch(1, [lent]);
    await until('the lent run has ended', async () => (await left(lent)) === 0);
    expect(await left(own)).toBe(TREE_SIZE);
    // A run that is returned in time is not ended.
    watchdog.watch(1, [own]);
    watchdog.watch(1, []);
    const again = randomUUID();
    await startTree(owner, again);
    watchdog.watch(1, [again]);
    await until('the next run has ended', async () => (await left(again)) === 0);
    expect(await left(own)).toBe(TREE_SIZE);
    const pid = Number(watchdog.pid);
    await watchdog.stop();
    expect(await alive(pid)).toBe(false);
  });

  it('also watches a run that was lent before the watchdog started', async () => {
    const owner = new ProcessOwner({ stateDir: tempDir(), warn: () => undefined });
    onCleanup(() => owner.release());
    const run = randomUUID();
    owner.extend(1_000);
    owner.lend(run);
    const child = start('sleep', ['60'], { env: owner.adopt(run, 'a-session') });
    await until('it is ended when its time runs out', () => child.signalCode !== null);
  });

  it('refuses an id that the shell could misinterpret', () => {
    expect(() => startWatchdog({ ownerId: 'a\nb; reboot' })).toThrow(TypeError);
  });
});

/** Runs the script itself, with the tools on the given path. */
async function runScript(
  platform: NodeJS.Platform,
  path: string,
  owner: string,
  since: string,
  groups = '',
): Promise<ChildProcess> {
  const { file, args } = watchdogCommand(platform);
  const script = spawn(file, args, {
    env: { PATH: path, LC_ALL: 'C', TZ: 'UTC' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  onCleanup(() => script.kill('SIGKILL'));
  script.stdin.write(`${owner}\n${since}\n${groups}\n`);
  await until('the script has started', () => script.pid !== undefined);
  return script;
}

function fakeTool(dir: string, name: string, body: string): void {
  writeFileSync(join(dir, name), body);
  chmodSync(join(dir, name), 0o755);
}

describe('the watchdog script', () => {
  it('works with a grep that does not support -z', async () => {
    const [owner, dir] = [newOwner(), tempDir()];
    fakeTool(dir, 'grep', '#!/bin/sh\ncase $1 in *z*) exit 2 ;; esac\nexec /usr/bin/grep "$@"\n');
    await startTree(owner, randomUUID());
    const script = await runScript('linux', `${dir}:/usr/bin:/bin`, owner, String(await startTimeOf(process.pid)));
    script.stdin?.end();
    await until('everything has exited', () => allGone(owner, Number(script.pid)));
  });

  it('ignores processes that started before its server', async () => {
    const owner = newOwner();
    const root = await startTree(owner, randomUUID());
    const later = Number(await startTimeOf(Number(root.pid))) + 100_000;
    const script = await runScript('linux', '/usr/bin:/bin', owner, String(later));
    script.stdin?.end();
    await once(script, 'exit');
    expect(await findMarked({ owner })).toHaveLength(TREE_SIZE);
  });

  it('on macOS finds processes with hidden environments by their parents', async () => {
    const [owner, dir] = [newOwner(), tempDir()];
    const innocent = startInnocent();
    // Like macOS, it hides the environment of system programs, here sleep.
    fakeTool(dir, 'ps', `#!${process.execPath}\n${FAKE_PS}`);
    for (const tool of ['awk', 'date', 'sleep', 'tr']) symlinkSync(`/usr/bin/${tool}`, join(dir, tool));
    await startTree(owner, randomUUID());
    const script = await runScript('darwin', dir, owner, '0');
    script.stdin?.end();
    // On macOS the orphan cannot be found: it has neither a visible environment nor a known parent.
    await until('the script has exited', async () => !(await alive(script.pid)), 15_000);
    expect((await findMarked({ owner })).map(({ pid }) => commandOf(pid).trim())).toEqual(['sleep 600']);
    expect(await alive(innocent.pid)).toBe(true);
  }, 20_000);

  it('on Windows ends the descendants of the server', async () => {
    const [dir, owner] = [tempDir(), newOwner()];
    const log = join(dir, 'log');
    // This process acts as the server: 11 and its child 12 are its own, 13 is older, 14 belongs to another process.
    const list = `11 ${process.pid} 2000\\n12 11 2001\\n13 ${process.pid} 1\\n14 4 3000\\n`;
    fakeTool(dir, 'powershell.exe', `#!/bin/sh\n[ -f ${log} ] && printf '14 4 3000\\n' || printf '${list}'\n`);
    fakeTool(dir, 'taskkill', `#!/bin/sh\necho "$*" >>${log}\n`);
    const script = await runScript('win32', `${dir}:/usr/bin:/bin`, owner, '1000');
    script.stdin?.end();
    await once(script, 'exit');
    expect(readFileSync(log, 'utf8')).toBe('/F /PID 11\n/F /PID 12\n');
  });

  it('on Windows ends nothing after a clean exit', async () => {
    const dir = tempDir();
    fakeTool(dir, 'powershell.exe', `#!/bin/sh\ntouch ${dir}/called\n`);
    const script = await runScript('win32', `${dir}:/usr/bin:/bin`, newOwner(), '1000');
    script.stdin?.end('done\n');
    await once(script, 'exit');
    expect(() => readFileSync(join(dir, 'called'))).toThrow();
  });
});

const FAKE_PS = `
const fs = require('node:fs');
const args = process.argv.slice(2);
const only = args.includes('-p') ? [args[args.indexOf('-p') + 1]] : fs.readdirSync('/proc').filter((n) => /^\\d+$/.test(n));
const boot = Number(/btime (\\d+)/.exec(fs.readFileSync('/proc/stat', 'utf8'))[1]);
for (const pid of only) {
  try {
    const stat = fs.readFileSync('/proc/' + pid + '/stat', 'latin1');
    const f = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const words = (name) => fs.readFileSync('/proc/' + pid + '/' + name, 'latin1').split('\\0').join(' ').trimEnd().replace(/\\n/g, '\\\\012');
    const [day, d, m, y, t] = new Date((boot + Math.floor(f[19] / 100)) * 1000).toUTCString().replace(',', '').split(' ');
    const born = [day, m, String(Number(d)).padStart(2), t, y].join(' ');
    const command = words('cmdline');
    const env = args.includes('-E') && !command.startsWith('sleep') ? ' ' + words('environ') : '';
    console.log(args.includes('lstart=') ? born : pid.padStart(5) + ' ' + f[1].padStart(5) + ' ' + f[0] + '    ' + born + ' ' + command + env);
  } catch {}
}
`;

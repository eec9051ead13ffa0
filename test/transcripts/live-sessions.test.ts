import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { findHolder, isSameProcess } from '../../src/transcripts/session-lock.ts';
import { openBench, Prompts } from '../scripted-model/cli-session.ts';
import { temporaryConfigDirectory } from './config-directory.ts';
import { registeredPid } from './registered-pid.ts';

const noneIsOurs = () => false;
const onLinux = test.skipIf(process.platform !== 'linux');

async function register(configDir: string, pid: number, content: unknown): Promise<void> {
  const directory = path.join(configDir, 'sessions');
  await mkdir(directory, { recursive: true });
  await writeFile(path.join(directory, `${pid}.json`), typeof content === 'string' ? content : JSON.stringify(content));
}

async function startIdleProcess(command: string, args: string[]): Promise<{ pid: number; firstLine: string }> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid: child.pid!, firstLine: line.toString().trim() };
}

/** The start time of this test's process, as Claude Code on Linux would record it. */
async function ownTicks(): Promise<string> {
  const stat = await readFile('/proc/self/stat', 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]!;
}

async function openSession() {
  const { home, model, start } = await openBench();
  model.on(/./).always(text('Done.'));
  return { configDir: path.join(home, '.claude'), sessionId: randomUUID(), start };
}

describe('with the real Claude Code', () => {
  test('a session is held while its process is alive, unless the process is ours', async () => {
    const { configDir, sessionId, start } = await openSession();
    const prompts = new Prompts().say('hello');
    for await (const message of start(prompts, { sessionId })) {
      if (message.type !== 'result') continue;
      const pid = await registeredPid(configDir, sessionId);
      expect(await findHolder(configDir, sessionId, noneIsOurs)).toEqual({ pid });
      expect(await findHolder(configDir, sessionId, (candidate) => candidate === pid)).toBeUndefined();
      expect(await findHolder(configDir, randomUUID(), noneIsOurs)).toBeUndefined();
      if (process.platform === 'linux') {
        // The recorded start time has the format we compare with.
        const { procStart } = JSON.parse(await readFile(path.join(configDir, 'sessions', `${pid}.json`), 'utf8'));
        expect(procStart).toMatch(/^\d+$/);
        expect(await isSameProcess({ pid, startTime: procStart })).toBe(true);
        expect(await isSameProcess({ pid, startTime: String(Number(procStart) - 1) })).toBe(false);
      }
      prompts.end();
    }
    await vi.waitFor(async () => expect(await findHolder(configDir, sessionId, noneIsOurs)).toBeUndefined(), {
      timeout: 30_000,
    });
  });

  test('a killed process stays registered but holds no session', async () => {
    const { configDir, sessionId, start } = await openSession();
    await expect(async () => {
      for await (const message of start(new Prompts().say('hello'), { sessionId })) {
        if (message.type === 'result') process.kill(await registeredPid(configDir, sessionId), 'SIGKILL');
      }
    }).rejects.toThrow('SIGKILL');
    expect((await readdir(path.join(configDir, 'sessions'))).some((name) => name.endsWith('.json'))).toBe(true);
    expect(await findHolder(configDir, sessionId, noneIsOurs)).toBeUndefined();
  });
});

describe('the session registry', () => {
  const sessionId = randomUUID();

  test('may be missing', async () => {
    expect(await findHolder(await temporaryConfigDirectory(), sessionId, noneIsOurs)).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ['empty', ''],
    ['truncated', `{"pid":1,"sessionId":"${sessionId}","cw`],
    ['not an object', 'null'],
    ['a list', [sessionId]],
    ['without a session', { procStart: '1' }],
    ['with a malformed session', { sessionId: { id: sessionId } }],
  ])('can be read with an entry that is %s', async (_what, content) => {
    const configDir = await temporaryConfigDirectory();
    const { pid } = await startIdleProcess('sh', ['-c', 'echo; exec sleep 600']);
    await register(configDir, pid, content);
    await register(configDir, process.pid, { sessionId });
    expect(await findHolder(configDir, sessionId, noneIsOurs)).toEqual({ pid: process.pid });
  });

  test('may contain other files', async () => {
    const configDir = await temporaryConfigDirectory();
    await register(configDir, process.pid, { sessionId: randomUUID() });
    const entry = JSON.stringify({ sessionId });
    for (const name of ['0.json', '-1.json', `${process.pid}.key`, `0${process.pid}.json`, 'x.json']) {
      await writeFile(path.join(configDir, 'sessions', name), entry);
    }
    await mkdir(path.join(configDir, 'sessions', `${process.ppid}.json`));
    expect(await findHolder(configDir, sessionId, noneIsOurs)).toBeUndefined();
  });

  test('can be read while an entry is being written', async () => {
    const configDir = await temporaryConfigDirectory();
    await register(configDir, process.pid, `{"sessionId":"${sessionId}`);
    const search = findHolder(configDir, sessionId, noneIsOurs);
    await register(configDir, process.pid, { sessionId });
    expect(await search).toEqual({ pid: process.pid });
  });

  onLinux('may name a pid that has been reused', async () => {
    const configDir = await temporaryConfigDirectory();
    await register(configDir, process.pid, { sessionId, procStart: '1' });
    expect(await findHolder(configDir, sessionId, noneIsOurs)).toBeUndefined();
    await register(configDir, process.pid, { sessionId, procStart: await ownTicks() });
    expect(await findHolder(configDir, sessionId, noneIsOurs)).toEqual({ pid: process.pid });
  });

  test.each([undefined, 'yesterday', 12])('is trusted if the start time %j is not understood', async (procStart) => {
    const configDir = await temporaryConfigDirectory();
    await register(configDir, process.pid, { sessionId, procStart });
    expect(await findHolder(configDir, sessionId, noneIsOurs)).toEqual({ pid: process.pid });
  });
});

describe('a recorded process', () => {
  onLinux('counts as gone when it is a zombie', async () => {
    // The child must outlive the shell that would reap it.
    const { firstLine } = await startIdleProcess('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 600']);
    const pid = Number(firstLine);
    await vi.waitFor(async () => expect(await readFile(`/proc/${pid}/stat`, 'latin1')).toContain(') Z '), {
      timeout: 30_000,
    });
    expect(await isSameProcess({ pid, startTime: undefined })).toBe(false);
  });

  test('is identified on macOS by the start time from ps', async () => {
    const { pid, firstLine: startTime } = await startIdleProcess('sh', [
      '-c',
      'LC_ALL=C TZ=UTC ps -o lstart= -p $$; exec sleep 600',
    ]);
    expect(await isSameProcess({ pid, startTime }, 'darwin')).toBe(true);
    expect(await isSameProcess({ pid, startTime: 'Thu Jan  1 00:00:00 1970' }, 'darwin')).toBe(false);
    expect(await isSameProcess({ pid, startTime: '4711' }, 'darwin')).toBe(true);
  });

  test('counts as alive on Windows while its pid exists', async () => {
    expect(await isSameProcess({ pid: process.pid, startTime: '1' }, 'win32')).toBe(true);
    const { pid } = await startIdleProcess('sh', ['-c', 'echo']);
    await vi.waitFor(async () => expect(await isSameProcess({ pid, startTime: '1' }, 'win32')).toBe(false), {
      timeout: 30_000,
    });
  });
});

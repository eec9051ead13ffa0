import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { findHolder } from '../../src/transcripts/live-sessions.ts';
import { isSameProcess } from '../../src/transcripts/recorded-process.ts';
import { openBench, Prompts } from '../scripted-model/cli-session.ts';
import { temporaryConfigDirectory } from './config-directory.ts';
import { registeredPid } from './registered-pid.ts';

const isNobodys = () => false;
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

/** This test's own process, as Claude Code on Linux would write it down. */
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
  test('a session is held while its process lives, unless the process is ours', async () => {
    const { configDir, sessionId, start } = await openSession();
    const prompts = new Prompts().say('hello');
    for await (const message of start(prompts, { sessionId })) {
      if (message.type !== 'result') continue;
      const pid = await registeredPid(configDir, sessionId);
      expect(await findHolder(configDir, sessionId, isNobodys)).toEqual({ pid });
      expect(await findHolder(configDir, sessionId, (candidate) => candidate === pid)).toBeUndefined();
      expect(await findHolder(configDir, randomUUID(), isNobodys)).toBeUndefined();
      if (process.platform === 'linux') {
        // Its start time is written in the form that we compare.
        const { procStart } = JSON.parse(await readFile(path.join(configDir, 'sessions', `${pid}.json`), 'utf8'));
        expect(procStart).toMatch(/^\d+$/);
        expect(await isSameProcess({ pid, startTime: procStart })).toBe(true);
        expect(await isSameProcess({ pid, startTime: String(Number(procStart) - 1) })).toBe(false);
      }
      prompts.end();
    }
    await vi.waitFor(async () => expect(await findHolder(configDir, sessionId, isNobodys)).toBeUndefined());
  });

  test('a killed process stays registered, and holds nothing', async () => {
    const { configDir, sessionId, start } = await openSession();
    await expect(async () => {
      for await (const message of start(new Prompts().say('hello'), { sessionId })) {
        if (message.type === 'result') process.kill(await registeredPid(configDir, sessionId), 'SIGKILL');
      }
    }).rejects.toThrow('SIGKILL');
    expect((await readdir(path.join(configDir, 'sessions'))).some((name) => name.endsWith('.json'))).toBe(true);
    expect(await findHolder(configDir, sessionId, isNobodys)).toBeUndefined();
  });
});

describe('a registry of any kind', () => {
  const sessionId = randomUUID();

  test('may be missing', async () => {
    expect(await findHolder(await temporaryConfigDirectory(), sessionId, isNobodys)).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ['empty', ''],
    ['cut', `{"pid":1,"sessionId":"${sessionId}","cw`],
    ['no object', 'null'],
    ['a list', [sessionId]],
    ['without a session', { procStart: '1' }],
    ['with a session of another form', { sessionId: { id: sessionId } }],
  ])('may hold an entry that is %s, and still be read', async (_what, content) => {
    const configDir = await temporaryConfigDirectory();
    const { pid } = await startIdleProcess('sh', ['-c', 'echo; exec sleep 600']);
    await register(configDir, pid, content);
    await register(configDir, process.pid, { sessionId });
    expect(await findHolder(configDir, sessionId, isNobodys)).toEqual({ pid: process.pid });
  });

  test('may hold other files', async () => {
    const configDir = await temporaryConfigDirectory();
    await register(configDir, process.pid, { sessionId: randomUUID() });
    const entry = JSON.stringify({ sessionId });
    for (const name of ['0.json', '-1.json', `${process.pid}.key`, `0${process.pid}.json`, 'x.json']) {
      await writeFile(path.join(configDir, 'sessions', name), entry);
    }
    await mkdir(path.join(configDir, 'sessions', `${process.ppid}.json`));
    expect(await findHolder(configDir, sessionId, isNobodys)).toBeUndefined();
  });

  test('may be read while an entry is written', async () => {
    const configDir = await temporaryConfigDirectory();
    await register(configDir, process.pid, `{"sessionId":"${sessionId}`);
    const search = findHolder(configDir, sessionId, isNobodys);
    await register(configDir, process.pid, { sessionId });
    expect(await search).toEqual({ pid: process.pid });
  });

  onLinux('may name a pid that another process has by now', async () => {
    const configDir = await temporaryConfigDirectory();
    await register(configDir, process.pid, { sessionId, procStart: '1' });
    expect(await findHolder(configDir, sessionId, isNobodys)).toBeUndefined();
    await register(configDir, process.pid, { sessionId, procStart: await ownTicks() });
    expect(await findHolder(configDir, sessionId, isNobodys)).toEqual({ pid: process.pid });
  });

  test.each([undefined, 'yesterday', 12])(
    'is believed where its start time %j means nothing to us',
    async (procStart) => {
      const configDir = await temporaryConfigDirectory();
      await register(configDir, process.pid, { sessionId, procStart });
      expect(await findHolder(configDir, sessionId, isNobodys)).toEqual({ pid: process.pid });
    },
  );
});

describe('a recorded process', () => {
  onLinux('that waits to be reaped is gone', async () => {
    // The child must outlive the shell that would reap it.
    const { firstLine } = await startIdleProcess('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 600']);
    const pid = Number(firstLine);
    await vi.waitFor(async () => expect(await readFile(`/proc/${pid}/stat`, 'latin1')).toContain(') Z '));
    expect(await isSameProcess({ pid, startTime: undefined })).toBe(false);
  });

  test('is known on macOS by what ps says of its start', async () => {
    const { pid, firstLine: startTime } = await startIdleProcess('sh', [
      '-c',
      'LC_ALL=C TZ=UTC ps -o lstart= -p $$; exec sleep 600',
    ]);
    expect(await isSameProcess({ pid, startTime }, 'darwin')).toBe(true);
    expect(await isSameProcess({ pid, startTime: 'Thu Jan  1 00:00:00 1970' }, 'darwin')).toBe(false);
    expect(await isSameProcess({ pid, startTime: '4711' }, 'darwin')).toBe(true);
  });

  test('is believed on Windows as long as its pid lives', async () => {
    expect(await isSameProcess({ pid: process.pid, startTime: '1' }, 'win32')).toBe(true);
    const { pid } = await startIdleProcess('sh', ['-c', 'echo']);
    await vi.waitFor(async () => expect(await isSameProcess({ pid, startTime: '1' }, 'win32')).toBe(false));
  });
});

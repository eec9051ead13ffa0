import { randomUUID } from 'node:crypto';
import { mkdir, readFile, realpath, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { createTranscripts } from '../../src/transcripts/disk-sessions.ts';
import { openBench } from '../scripted-model/cli-session.ts';
import { temporaryConfigDirectory, useConfigDirectory } from './config-directory.ts';
import { promptLine, writeTranscript } from './written-transcript.ts';

const PAGE = { limit: 50, offset: 0 };

describe('with the real Claude Code', () => {
  test('sessions are listed newest first, all of them or those of a directory', async () => {
    const { home, model, run } = await openBench();
    model.on(/./).always(text('Done.'));
    const configDir = path.join(home, '.claude');
    useConfigDirectory(configDir);
    const transcripts = createTranscripts({ configDir });
    const [here, there] = [path.join(await realpath(home), 'here'), path.join(await realpath(home), 'there')];
    await Promise.all([mkdir(here), mkdir(there)]);
    const [older, newer] = [randomUUID(), randomUUID()];
    const before = Date.now();
    await run('Fix the login', { sessionId: older, cwd: here });
    await run('Write\nthe docs', { sessionId: newer, cwd: there });

    const all = await transcripts.list(PAGE);
    expect(all).toMatchObject([
      { sessionId: newer, projectDirectory: there, displayText: 'Write the docs' },
      { sessionId: older, projectDirectory: here, displayText: 'Fix the login' },
    ]);
    for (const { createdAt, lastModified } of all) {
      expect(createdAt).toBeGreaterThanOrEqual(before);
      expect(lastModified).toBeGreaterThanOrEqual(createdAt!);
    }
    expect(await transcripts.list({ ...PAGE, projectDirectory: here })).toMatchObject([{ sessionId: older }]);
    expect(await transcripts.list({ limit: 1, offset: 1 })).toMatchObject([{ sessionId: older }]);
    expect(await transcripts.list({ ...PAGE, projectDirectory: path.join(home, 'nowhere') })).toEqual([]);
  });

  test('a session is found with its directory and file, a message in it by its uuid', async () => {
    const { home, model, run } = await openBench();
    model.on(/./).always(text('Done.'));
    const configDir = path.join(home, '.claude');
    useConfigDirectory(configDir);
    const transcripts = createTranscripts({ configDir });
    const sessionId = randomUUID();
    const { messages } = await run('Fix the login', { sessionId });

    const found = await transcripts.find(sessionId);
    expect(found).toMatchObject({ sessionId, cwd: await realpath(home) });
    expect(await readFile(found!.file!, 'utf8')).toContain('Fix the login');

    const answer = messages.find((message) => message.type === 'assistant')!;
    expect(await transcripts.messageExists(sessionId, answer.uuid)).toBe(true);
    expect(await transcripts.messageExists(sessionId, randomUUID())).toBe(false);
    expect(await transcripts.messageExists(randomUUID(), answer.uuid)).toBe(false);
    expect(await transcripts.messageExists(sessionId, 'Fix the login')).toBe(false);
  });
});

test.each(['', 'x', '..', '../../etc/passwd', `${randomUUID()}/..`, `${randomUUID()}\n`, randomUUID().toUpperCase()])(
  'no session is called %j',
  async (sessionId) => {
    const configDir = await temporaryConfigDirectory();
    expect(await createTranscripts({ configDir }).find(sessionId)).toBeUndefined();
  },
);

test('where Claude Code never ran there are no sessions', async () => {
  const transcripts = createTranscripts({ configDir: await temporaryConfigDirectory() });
  expect(await transcripts.list(PAGE)).toEqual([]);
  expect(await transcripts.find(randomUUID())).toBeUndefined();
});

test('a transcript that cannot be read does not spoil the list', async () => {
  const configDir = await temporaryConfigDirectory();
  const transcripts = createTranscripts({ configDir });
  const good = await writeTranscript(configDir, (id) => promptLine(id, 'Fix the login'));
  const broken = ['', '\0\0\u00ff{{{', '<html>\n', '{"type":"user"}\n', '[]\nnull\n5\n', '{"type":"user","message":'];
  for (const content of broken) await writeTranscript(configDir, content);
  const half = await writeTranscript(configDir, (id) => `{"type":"us\n${promptLine(id, 'Write the docs')}{"type`);
  await mkdir(path.join(configDir, 'projects', '-work', `${randomUUID()}.jsonl`));
  await symlink('/nowhere', path.join(configDir, 'projects', '-work', `${randomUUID()}.jsonl`));
  await symlink('/nowhere', path.join(configDir, 'projects', '-nowhere'));

  const listed = (await transcripts.list(PAGE)).map(({ sessionId }) => sessionId);
  expect(listed.toSorted()).toEqual([good.sessionId, half.sessionId].toSorted());
});

test('no limit is not unlimited', async () => {
  const configDir = await temporaryConfigDirectory();
  await writeTranscript(configDir, (id) => promptLine(id, 'Fix the login'));
  expect(await createTranscripts({ configDir }).list({ limit: 0, offset: 0 })).toEqual([]);
});

test('the newest 50 of 5,000 sessions are listed in under a second', async () => {
  const configDir = await temporaryConfigDirectory();
  const talk = (id: string) => promptLine(id, 'Fix the login').repeat(20);
  for (let written = 0; written < 5_000; written += 100) {
    const options = { project: `-work-${written}`, lastModified: new Date(1_700_000_000_000 + written * 1000) };
    await Promise.all(Array.from({ length: 100 }, () => writeTranscript(configDir, talk, options)));
  }
  const transcripts = createTranscripts({ configDir });
  await import('@anthropic-ai/claude-agent-sdk');

  // Other tests run beside this one: the best of three tells what the code costs.
  const times: number[] = [];
  for (let run = 0; run < 3; run++) {
    const start = performance.now();
    expect(await transcripts.list(PAGE)).toHaveLength(50);
    times.push(performance.now() - start);
  }
  expect(Math.min(...times)).toBeLessThan(1_000);
});

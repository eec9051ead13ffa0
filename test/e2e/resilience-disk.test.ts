import { appendFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { startRunningCommand } from '../harness/running-command.ts';

async function answers(h: Harness, prompt: string): Promise<string> {
  h.model.on(prompt).always(text(`answer to ${prompt}`));
  const { sessionId } = await h.ok('claude_code', { prompt, cwd: h.project });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: `answer to ${prompt}` } });
  return sessionId;
}

async function transcriptOf(h: Harness, sessionId: string): Promise<string> {
  const projects = join(h.configDir, 'projects');
  const [project] = await readdir(projects);
  return join(projects, String(project), `${sessionId}.jsonl`);
}

describe('a state directory that cannot be written', () => {
  // Below a regular file no directory can be made, whoever asks.
  test('sessions work, stderr says what is missing, nothing is left behind', async () => {
    const h = await startHarness({ env: { CLAUDE_CODE_MCP_STATE_DIR: '/etc/hostname/state' } });
    await answers(h, 'without a state directory');
    expect(h.server.stderr()).toMatch(/state directory is not writable/);
    expect(h.server.stderr()).toMatch(/audit/i);
    await startRunningCommand(h);
    h.server.kill('SIGKILL');
    await eventually(async () => (await h.processes()).length === 0, {
      what: 'the watchdog cleans up',
      within: 10_000,
    });
  });

  test.skipIf(process.platform !== 'linux')(
    'a full disk under the audit log is said once, and fails no call',
    async () => {
      const h = await startHarness({ env: { CLAUDE_CODE_MCP_AUDIT_LOG: '/dev/full' } });
      const sessionId = await answers(h, 'with a full disk');
      await h.ok('claude_code_reply', { sessionId, prompt: 'with a full disk', waitMs: 40_000 });
      expect(h.server.stderr()).toMatch(/audit/i);
    },
  );

  test('a record of an owner that is garbage is reported and removed', async () => {
    const h = await startHarness();
    // Or it would come upon the garbage itself, perhaps just before its end.
    h.server.closeStdin();
    await h.server.exited;
    const owners = join(h.stateDir, 'claude-code-mcp', 'owners');
    await mkdir(owners, { recursive: true });
    await writeFile(join(owners, '00000000-0000-4000-8000-000000000000.json'), '{"half":');
    await h.startServer();
    await eventually(async () => (await readdir(owners)).length === 0, { what: 'the garbage is removed' });
    await eventually(() => h.server.stderr().includes('not an owner record'), { what: 'it is reported' });
  });
});

test('a transcript with a corrupt line resumes; a missing or unreadable one is a clear error; others are not touched', async () => {
  const h = await startHarness({
    env: { CLAUDE_CODE_MCP_PARK_AFTER_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '10' },
  });
  const [corrupt, missing, unreadable, whole] = await Promise.all(
    ['corrupt', 'missing', 'unreadable', 'whole'].map((name) => answers(h, `the ${name} one`)),
  );
  await eventually(async () => (await h.processes()).length === 1, { what: 'all are parked' });
  await appendFile(await transcriptOf(h, corrupt!), '{"type":"user","message":{"ro\n\u0000\u0000not json\n');
  for (const sessionId of [missing!, unreadable!]) await rm(await transcriptOf(h, sessionId));
  // Root reads everything but a directory.
  await mkdir(await transcriptOf(h, unreadable!));

  const { sessions } = await h.ok('claude_code_session', { action: 'list', scope: 'disk' });
  expect(sessions.map(({ sessionId }: Json) => sessionId)).toEqual(expect.arrayContaining([corrupt, whole]));
  for (const sessionId of [missing, unreadable]) {
    const { isError, text: said } = await h.call('claude_code_reply', { sessionId, prompt: 'go on' });
    expect(isError).toBe(true);
    expect(said).toMatch(/did not start: .*(No conversation found|Failed to resume session)/);
  }
  for (const sessionId of [corrupt, whole]) {
    h.model.on(`go on, ${sessionId!}`).always(text('gone on'));
    await h.ok('claude_code_reply', { sessionId, prompt: `go on, ${sessionId!}` });
    expect(await h.waitUntilRest(sessionId!)).toMatchObject({ status: 'idle', result: { result: 'gone on' } });
  }
});

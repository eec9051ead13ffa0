import { appendFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { endlessCommand, runningProcesses } from '../harness/running-command.ts';
import { canMount, mountSmallDisk, type SmallDisk } from '../harness/small-disk.ts';

async function startAnswered(h: Harness, prompt: string): Promise<string> {
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

describe('with a state directory that cannot be written', () => {
  // Not even root can make a directory below a regular file.
  test('sessions work, stderr says what is missing, and no process is left behind', async () => {
    const h = await startHarness({ env: { CLAUDE_CODE_MCP_STATE_DIR: '/etc/hostname/state' } });
    h.model.on('hello').reply(text('without a state directory'));
    h.model.on('run it').reply(endlessCommand('stateless'));
    const sessionId = await h.begin('hello', { allowedTools: ['Bash'] });
    expect(await h.finish(sessionId)).toMatchObject({ answer: 'without a state directory' });
    expect(h.server.stderr()).toMatch(/state directory is not writable/);
    expect(h.server.stderr()).toMatch(/audit/i);
    await h.say(sessionId, 'run it');
    await runningProcesses(h, sessionId, 'stateless');
    h.server.kill('SIGKILL');
    await eventually(async () => (await h.processes()).length === 0, {
      what: 'the watchdog has ended all processes',
      within: 10_000,
    });
  });
});

/** One server with all of these faults, none of which affects the others. */
describe('a server with garbage in its state directory, a full disk under its audit log, and damaged transcripts', () => {
  const owners = ({ stateDir }: Harness): string => join(stateDir, 'claude-code-mcp', 'owners');
  const isLinux = process.platform === 'linux';
  const harness = shareHarness({
    env: {
      CLAUDE_CODE_MCP_PARK_AFTER_MS: '1',
      CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '10',
      ...(isLinux && { CLAUDE_CODE_MCP_AUDIT_LOG: '/dev/full' }),
    },
    prepare: async (place) => {
      await mkdir(owners(place), { recursive: true });
      await writeFile(join(owners(place), '00000000-0000-4000-8000-000000000000.json'), '{"half":');
    },
  });

  test('a garbled owner record is reported and removed', async () => {
    const h = harness();
    await eventually(() => h.server.stderr().includes('not an owner record'), { what: 'the record is reported' });
    await eventually(async () => !(await readdir(owners(h))).some((name) => name.startsWith('00000000')), {
      what: 'the record is removed',
    });
  });

  test('a transcript with a corrupt line can be resumed, a missing or unreadable one is a clear error, and others are not affected', async () => {
    const h = harness();
    const [corrupt, missing, whole] = await Promise.all(
      ['corrupt', 'missing', 'whole'].map((name) => startAnswered(h, `the ${name} one`)),
    );
    await eventually(async () => (await h.processes()).length === 1, { what: 'all are parked' });
    await appendFile(await transcriptOf(h, corrupt!), '{"type":"user","message":{"ro\n\u0000\u0000not json\n');
    await rm(await transcriptOf(h, missing!));

    const { sessions } = await h.ok('claude_code_session', { action: 'list', scope: 'disk' });
    expect(sessions.map(({ sessionId }: Json) => sessionId)).toEqual(expect.arrayContaining([corrupt, whole]));
    const expectNotResumed = async (): Promise<void> => {
      const { isError, text: said } = await h.call('claude_code_reply', { sessionId: missing, prompt: 'go on' });
      expect(isError).toBe(true);
      expect(said).toMatch(/did not start: .*(No conversation found|Failed to resume session)/);
    };
    await expectNotResumed();
    // Root can read everything but a directory.
    await mkdir(await transcriptOf(h, missing!));
    await expectNotResumed();
    for (const sessionId of [corrupt, whole]) {
      h.model.on(`go on, ${sessionId!}`).always(text('gone on'));
      await h.ok('claude_code_reply', { sessionId, prompt: `go on, ${sessionId!}` });
      expect(await h.waitUntilRest(sessionId!)).toMatchObject({ status: 'idle', result: { result: 'gone on' } });
    }
  });

  // Last, because it ends the server.
  test.runIf(isLinux)('a full disk under the audit log is reported once, and fails no call', async () => {
    const h = harness();
    for (let calls = 0; calls < 3; calls++) await h.ok('claude_code_session', { action: 'list' });
    const reports = (): string[] => h.server.stderr().match(/^.*audit.*ENOSPC.*$/gim) ?? [];
    await eventually(() => reports().length > 0, { what: 'the full disk is reported' });
    await h.ok('claude_code_session', { action: 'list' });
    h.server.closeStdin();
    await h.server.exited;
    expect(reports()).toHaveLength(1);
  });
});

// Skipped unless run by root on Linux, where a file system can be mounted.
test.runIf(canMount)(
  'on a full disk a worktree is UNAVAILABLE, and a session without a transcript says so',
  async () => {
    let disk: SmallDisk | undefined;
    const h = await startHarness({
      git: true,
      prepare: async ({ home, configDir, stateDir }) => {
        disk = mountSmallDisk(home, 'size=16m');
        for (const directory of [configDir, stateDir]) await mkdir(directory, { recursive: true });
      },
    });
    // Before the harness removes its home.
    onTestFinished(() => disk?.unmount());
    const written = await startAnswered(h, 'with space');
    disk!.fill();
    const workspace = { type: 'worktree' };
    const refused = await h.fails('claude_code', { prompt: 'elsewhere', advanced: { workspace } }, 'UNAVAILABLE');
    expect(refused).toContain(`${h.stateDir}/claude-code-mcp/worktrees`);
    expect(refused).toContain('the disk is full. Free some space');

    const lost = await startAnswered(h, 'without space');
    const poll = (sessionId: string): Promise<Json> =>
      h.ok('claude_code_check', { action: 'poll', sessionId, cursor: 1 });
    const { activity } = await eventually(
      async () => {
        const seen = await poll(lost);
        return seen.events.some(({ type }: Json) => type === 'error') ? seen : undefined;
      },
      { what: 'the missing transcript is reported' },
    );
    expect(activity).toContain('has not written the last turn to its transcript');
    expect((await poll(written)).events.map(({ type }: Json) => type)).not.toContain('error');
  },
);

/** The audit trail of real sessions: what is in it, what never is, and how a person reads it. */

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digest, type AuditEntry } from '../../src/audit/audit-entry.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { runCommandIn } from '../harness/run-command.ts';

const touch = tool('Bash', { command: 'touch the-word-in-the-input.txt', description: 'make a file' });
const PROMPT = 'make a file, said the-word-in-the-prompt';

const auditFile = (h: Harness): string => join(h.stateDir, 'claude-code-mcp', 'audit.jsonl');

/** The entries, once the last of them has this kind. */
async function entries(h: Harness, last: (entry: AuditEntry) => boolean): Promise<AuditEntry[]> {
  return eventually(
    async () => {
      const lines = (await readFile(auditFile(h), 'utf8')).trim().split('\n');
      const found = lines.map((line) => JSON.parse(line) as AuditEntry);
      return found.some(last) && found;
    },
    { what: 'the entry is in the audit log' },
  );
}

describe('a session', () => {
  it('leaves every call, start, request, decision and end, and the text of none', async () => {
    const h = await startHarness();
    h.model.on('said the-word').reply(touch, text('made it'));
    const { sessionId } = await h.ok('claude_code', {
      prompt: PROMPT,
      systemPrompt: 'the-word-in-the-system-prompt',
      env: { PASSWORD: 'the-word-in-env' },
      settings: { env: { OTHER: 'the-word-in-settings' } },
    });
    const { requestId } = await h.waitForRequest(sessionId);
    await h.allow(sessionId, { requestId });
    await h.waitUntilRest(sessionId);
    await h.ok('claude_code_session', { action: 'cancel', sessionId });

    const trail = await entries(h, ({ what }) => what === 'claude_code_session cancel');
    const { chars, sha256 } = digest(PROMPT);
    expect(trail.filter(({ kind }) => kind !== 'tool_call')).toMatchObject([
      { kind: 'start', session: sessionId, who: 'caller', details: { prompt: `${chars} chars, sha256 ${sha256}` } },
      { kind: 'request', session: sessionId, who: 'claude', what: 'Bash', details: { request: requestId } },
      { kind: 'decision', session: sessionId, who: 'caller', what: 'Bash', outcome: 'allow' },
      { kind: 'end', session: sessionId, who: 'claude', what: 'idle', cost: expect.any(Number) },
      { kind: 'end', session: sessionId, who: 'cancel', what: 'cancelled' },
    ]);
    expect(trail.find(({ what }) => what === 'claude_code_session cancel')).toMatchObject({ session: sessionId });
    const calls = trail.filter(({ kind }) => kind === 'tool_call').map(({ what, outcome }) => `${what}: ${outcome}`);
    expect(calls).toEqual(
      expect.arrayContaining([
        'claude_code: ok',
        'claude_code_check respond_permission: ok',
        'claude_code_check wait: ok',
      ]),
    );
    for (const { time } of trail) expect(new Date(time).toISOString()).toBe(time);
    expect(await readFile(auditFile(h), 'utf8')).not.toContain('the-word-in');
  });

  it('that is refused leaves the call, its outcome and no text', async () => {
    const h = await startHarness();
    await h.fails('claude_code', { prompt: PROMPT, permissionMode: 'bypassPermissions' }, 'PERMISSION_DENIED');
    await h.fails('claude_code', { prompt: PROMPT, nonsense: 'the-word-in-nonsense' }, 'INVALID_ARGUMENT');
    await h.fails('no_such_tool', {}, 'INVALID_ARGUMENT');
    const missing = { action: 'get', sessionId: 'missing' };
    await h.fails('claude_code_session', missing, 'SESSION_NOT_FOUND');
    const trail = await entries(h, ({ outcome }) => outcome === 'SESSION_NOT_FOUND');
    expect(trail).toMatchObject([
      { kind: 'tool_call', what: 'claude_code', outcome: 'PERMISSION_DENIED' },
      { kind: 'tool_call', what: 'claude_code', outcome: 'INVALID_ARGUMENT' },
      { kind: 'tool_call', what: 'no_such_tool', outcome: 'INVALID_ARGUMENT' },
      { kind: 'tool_call', what: 'claude_code_session get', session: 'missing', outcome: 'SESSION_NOT_FOUND' },
    ]);
    expect(await readFile(auditFile(h), 'utf8')).not.toContain('the-word-in');
  });
});

describe('a request that a rule refuses at once', () => {
  it('leaves its own record and that of its decision, and no wait ends for it', async () => {
    const h = await startHarness();
    const file = join(h.project, 'notes.txt');
    h.model.on('write it').reply(tool('Write', { file_path: file, content: 'x' }), text('not written'));
    const refused = { prompt: 'write it', disallowedTools: ['Write(notes.txt)'], waitMs: 40_000 };
    const { sessionId, status } = await h.ok('claude_code', refused);
    expect(status).toBe('idle');
    const trail = await entries(h, ({ kind }) => kind === 'end');
    expect(trail.filter(({ kind }) => kind === 'request' || kind === 'decision')).toMatchObject([
      { kind: 'request', session: sessionId, who: 'claude', what: 'Write' },
      { kind: 'decision', session: sessionId, who: 'policy', what: 'Write', outcome: 'deny' },
    ]);
  });
});

// That of a time-out: `requests`; of a person and of a client without forms: `forms-human`.
it('a decision carries its source, be it the caller, a cancel or the end of the server, and no message', async () => {
  const h = await startHarness();
  h.model.on('said the-word').reply(touch, touch).reply(touch);
  for (const end of [
    async (sessionId: string) => {
      await h.deny(sessionId, { message: 'the-word-in-the-message' });
      await h.waitForRequest(sessionId);
      await h.ok('claude_code_session', { action: 'cancel', sessionId });
    },
    () => (h.server.closeStdin(), h.server.exited),
  ]) {
    const { sessionId } = await h.ok('claude_code', { prompt: PROMPT });
    await h.waitForRequest(sessionId);
    await end(sessionId);
  }
  const trail = await entries(h, ({ who }) => who === 'shutdown');
  expect(trail.filter(({ kind }) => kind === 'decision')).toMatchObject([
    { who: 'caller', outcome: 'deny' },
    { who: 'cancel', outcome: 'deny' },
    { who: 'shutdown', outcome: 'deny' },
  ]);
  expect(await readFile(auditFile(h), 'utf8')).not.toContain('the-word-in');
});

describe('the audit command', () => {
  it('prints the last entries, filtered by session, also as JSON', async () => {
    const h = await startHarness();
    h.model.on('hello').always(text('hello'));
    const one = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
    const other = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
    await entries(h, ({ kind, session }) => kind === 'tool_call' && session === other.sessionId);

    const audit = (...args: string[]): ReturnType<typeof runCommandIn> =>
      runCommandIn(
        {
          project: h.project,
          env: () => ({ PATH: process.env['PATH'] ?? '', HOME: h.home, XDG_STATE_HOME: h.stateDir }),
        },
        { args: ['audit', ...args] },
      );
    const people = await audit('--session', one.sessionId);
    expect(people).toMatchObject({ code: 0, stderr: '' });
    expect(people.stdout).toContain(one.sessionId.slice(0, 8));
    expect(people.stdout).not.toContain(other.sessionId.slice(0, 8));
    const lines = (await audit('--json', '--last', '1')).stdout.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as AuditEntry).session)).toEqual([other.sessionId]);
    expect(await audit('--last', 'many')).toMatchObject({ code: 2 });
  });
});

describe.skipIf(process.platform === 'win32')('a file that was there before', () => {
  const modeOf = async (file: string): Promise<string> => ((await stat(file)).mode & 0o777).toString(8);

  it('is closed to others, the full ones too', async () => {
    const h = await startHarness();
    const files = [auditFile(h), `${auditFile(h)}.1`];
    for (const file of files) {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, '');
      await chmod(file, 0o666);
    }
    await h.restartServer();
    await h.fails('claude_code_session', { action: 'get', sessionId: 'none' }, 'SESSION_NOT_FOUND');
    await entries(h, ({ kind }) => kind === 'tool_call');
    expect(await Promise.all(files.map(modeOf))).toEqual(['600', '600']);
  });

  it.each(['link', 'pipe'])('is not written to when it is a %s, and the calls go on', async (kind) => {
    const h = await startHarness();
    const elsewhere = join(h.home, 'elsewhere');
    await writeFile(elsewhere, 'kept');
    await mkdir(dirname(auditFile(h)), { recursive: true });
    await rm(auditFile(h), { force: true });
    if (kind === 'link') await symlink(elsewhere, auditFile(h));
    else execFileSync('mkfifo', [auditFile(h)]);
    await h.restartServer();
    await h.fails('claude_code_session', { action: 'get', sessionId: 'none' }, 'SESSION_NOT_FOUND');
    await eventually(() => h.server.stderr().includes('audit'), { what: 'the failed write is said on stderr' });
    expect(await readFile(elsewhere, 'utf8')).toBe('kept');
  });
});

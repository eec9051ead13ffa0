/** The audit trail of real sessions: what is in it, what never is, and how a person reads it. */

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digest, type AuditEntry } from '../../src/audit/audit-log.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { runCommandIn } from '../harness/run-command.ts';
import { standIn } from './stand-in.ts';

const touch = tool('Bash', { command: 'touch the-word-in-the-input.txt', description: 'make a file' });
const PROMPT = 'make a file, said the-word-in-the-prompt';

const auditFile = (h: Harness): string => join(h.stateDir, 'claude-code-mcp', 'audit.jsonl');

/** The entries, once one of them matches. */
async function entries(h: Harness, isAwaited: (entry: AuditEntry) => boolean): Promise<AuditEntry[]> {
  return eventually(
    async () => {
      const lines = (await readFile(auditFile(h), 'utf8')).trim().split('\n');
      const found = lines.map((line) => JSON.parse(line) as AuditEntry);
      return found.some(isAwaited) && found;
    },
    { what: 'the entry is in the audit log' },
  );
}

const shared = shareHarness();

describe('a session', () => {
  // For decisions by timeout, see `requests`; by a person or without forms, `forms-human`.
  it('is logged with every call, start, request, decision and its source, and end, but none of the texts', async () => {
    const h = shared();
    const notes = tool('Write', { file_path: join(h.project, 'notes.txt'), content: 'the-word-in-the-content' });
    h.model.on('make a file, said').reply(notes, touch, touch, text('made it'));
    h.model.on('and another').reply(touch);
    const asked = await h.ok('claude_code', {
      prompt: PROMPT,
      systemPrompt: 'the-word-in-the-system-prompt',
      disallowedTools: ['Write(notes.txt)'],
      env: { PASSWORD: 'the-word-in-env' },
      settings: { env: { OTHER: 'the-word-in-settings' } },
      waitMs: 40_000,
    });
    // A refusal by a rule does not end the wait.
    expect(asked).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash' }] });
    const { sessionId } = asked;
    await h.deny(sessionId, { message: 'the-word-in-the-message' });
    const { requestId } = await h.waitForRequest(sessionId);
    await h.allow(sessionId, { requestId });
    await h.waitUntilRest(sessionId);
    await h.say(sessionId, 'and another, said the-word-in-the-reply');
    await h.waitForRequest(sessionId);
    await h.ok('claude_code_session', { action: 'cancel', sessionId });

    const isCancel = ({ what, session }: AuditEntry): boolean =>
      what === 'claude_code_session cancel' && session === sessionId;
    const trail = (await entries(h, isCancel)).filter(({ session }) => session === sessionId);
    const { chars, sha256 } = digest(PROMPT);
    expect(trail.filter(({ kind }) => kind !== 'tool_call')).toMatchObject([
      { kind: 'start', who: 'caller', details: { prompt: `${chars} chars, sha256 ${sha256}` } },
      { kind: 'request', who: 'claude', what: 'Write' },
      { kind: 'decision', who: 'policy', what: 'Write', outcome: 'deny' },
      { kind: 'request', who: 'claude', what: 'Bash' },
      { kind: 'decision', who: 'caller', what: 'Bash', outcome: 'deny' },
      { kind: 'request', who: 'claude', what: 'Bash', details: { request: requestId } },
      { kind: 'decision', who: 'caller', what: 'Bash', outcome: 'allow' },
      { kind: 'end', who: 'claude', what: 'idle', cost: expect.any(Number) },
      { kind: 'request', who: 'claude', what: 'Bash' },
      { kind: 'decision', who: 'cancel', what: 'Bash', outcome: 'deny' },
      { kind: 'end', who: 'cancel', what: 'cancelled' },
    ]);
    const calls = trail.filter(({ kind }) => kind === 'tool_call').map(({ what, outcome }) => `${what}: ${outcome}`);
    expect(calls).toEqual(
      expect.arrayContaining([
        'claude_code: ok',
        'claude_code_check respond_permission: ok',
        'claude_code_check wait: ok',
        'claude_code_reply: ok',
        'claude_code_session cancel: ok',
      ]),
    );
    for (const { time } of trail) expect(new Date(time).toISOString()).toBe(time);
    expect(await readFile(auditFile(h), 'utf8')).not.toContain('the-word-in');

    // The log on stderr has a line for each of them, without the texts.
    const lines = h.server
      .stderr()
      .split('\n')
      .filter((line) => line.includes(sessionId));
    expect(lines.map((line) => line.slice(line.indexOf(sessionId) + String(sessionId).length))).toEqual([
      ': start (new)',
      ': request: Write',
      ': decision: Write deny by policy',
      ': request: Bash',
      ': decision: Bash deny by caller',
      ': request: Bash',
      ': decision: Bash allow by caller',
      ': end: idle',
      ': request: Bash',
      ': decision: Bash deny by cancel',
      ': end: cancelled',
    ]);
    expect(h.server.stderr()).not.toContain('the-word-in');
  });

  it('that is refused is logged with the call and its outcome, but no text', async () => {
    const h = shared();
    await h.fails('claude_code', { prompt: PROMPT, permissionMode: 'bypassPermissions' }, 'PERMISSION_DENIED');
    await h.fails('claude_code', { prompt: PROMPT, nonsense: 'the-word-in-nonsense' }, 'INVALID_ARGUMENT');
    await h.fails('no_such_tool', {}, 'INVALID_ARGUMENT');
    await h.fails('claude_code_session', { action: 'get', sessionId: 'missing' }, 'SESSION_NOT_FOUND');
    const trail = await entries(h, ({ session }) => session === 'missing');
    const last = trail.findIndex(({ session }) => session === 'missing');
    expect(trail.slice(last - 3, last + 1)).toMatchObject([
      { kind: 'tool_call', what: 'claude_code', outcome: 'PERMISSION_DENIED' },
      { kind: 'tool_call', what: 'claude_code', outcome: 'INVALID_ARGUMENT' },
      { kind: 'tool_call', what: 'no_such_tool', outcome: 'INVALID_ARGUMENT' },
      { kind: 'tool_call', what: 'claude_code_session get', outcome: 'SESSION_NOT_FOUND' },
    ]);
    expect(await readFile(auditFile(h), 'utf8')).not.toContain('the-word-in');
  });
});

describe('the audit command', () => {
  it('prints the last entries, by session and as JSON', async () => {
    const h = shared();
    const [one, other] = ['one-that-is-asked-for', 'another-one'];
    for (const sessionId of [one, other])
      await h.fails('claude_code_session', { action: 'get', sessionId }, 'SESSION_NOT_FOUND');
    await entries(h, ({ session }) => session === other);

    const audit = (...args: string[]): ReturnType<typeof runCommandIn> =>
      runCommandIn(
        {
          project: h.project,
          env: () => ({ PATH: process.env['PATH'] ?? '', HOME: h.home, XDG_STATE_HOME: h.stateDir }),
        },
        { args: ['audit', ...args] },
      );
    const readable = await audit('--session', one);
    expect(readable).toMatchObject({ code: 0, stderr: '' });
    expect(readable.stdout).toContain(one.slice(0, 8));
    expect(readable.stdout).not.toContain(other.slice(0, 8));
    const lines = (await audit('--json', '--last', '1')).stdout.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as AuditEntry).session)).toEqual([other]);
    expect(await audit('--last', 'many')).toMatchObject({ code: 2 });
  });
});

describe.skipIf(process.platform === 'win32')('an existing log file', () => {
  const modeOf = async (file: string): Promise<string> => ((await stat(file)).mode & 0o777).toString(8);
  const filesOf = (h: Harness): string[] => [auditFile(h), `${auditFile(h)}.1`];

  async function openFiles(h: Harness): Promise<void> {
    for (const file of filesOf(h)) {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, '');
      await chmod(file, 0o666);
    }
  }

  it('is made private, and so are rotated ones, and is not written to if it is a link or a pipe', async () => {
    const h = await startHarness({ prepare: openFiles });
    const { sessionId } = await h.ok('claude_code', { prompt: PROMPT, ...standIn('asks') });
    await h.waitForRequest(sessionId);
    await entries(h, ({ kind }) => kind === 'request');
    expect(await Promise.all(filesOf(h).map(modeOf))).toEqual(['600', '600']);
    h.server.closeStdin();
    await h.server.exited;
    const trail = await entries(h, ({ kind }) => kind === 'decision');
    expect(trail.find(({ kind }) => kind === 'decision')).toMatchObject({ who: 'shutdown', outcome: 'deny' });

    const elsewhere = join(h.home, 'elsewhere');
    await writeFile(elsewhere, 'kept');
    for (const put of [() => symlink(elsewhere, auditFile(h)), () => void execFileSync('mkfifo', [auditFile(h)])]) {
      await rm(auditFile(h));
      await put();
      await h.restartServer();
      // Calls still work.
      await h.fails('claude_code_session', { action: 'get', sessionId: 'none' }, 'SESSION_NOT_FOUND');
      await eventually(() => h.server.stderr().includes('audit'), { what: 'the failed write is reported on stderr' });
      expect(await readFile(elsewhere, 'utf8')).toBe('kept');
    }
  });
});

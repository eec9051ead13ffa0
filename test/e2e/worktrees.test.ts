/** Sessions in git worktrees, and how their work is applied or discarded. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { missingSandboxPackages } from '../../src/config/needed-programs.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { ERAS, type FormAnswer } from '../harness/connect-client.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';
import { allowOnce, auditedEntries, decline, SlowPerson } from './forms-support.ts';

const bash = (command: string): ReturnType<typeof tool> => tool('Bash', { command, description: 'run' });
const WORKTREE = { advanced: { workspace: { type: 'worktree' } } };
const ALLOWED = { allowedTools: ['Bash'], waitMs: 40_000 };

type Git = (...args: string[]) => string;

function gitIn(h: Harness): Git {
  return (...args) =>
    execFileSync('git', args, { cwd: h.project, encoding: 'utf8', env: { ...process.env, HOME: h.home } }).trim();
}

/** A repository with one file in it. */
const repository: HarnessOptions = {
  git: true,
  prepare(h) {
    const git = gitIn(h);
    writeFileSync(join(h.project, 'a.txt'), 'one\n');
    git('add', '--all');
    git('commit', '--quiet', '--message', 'first');
  },
};

const manage = (h: Harness, action: string, sessionId: string, args: object = {}): Promise<Json> =>
  h.ok('claude_code_session', { action, sessionId, ...args });

const shared = shareHarness({
  ...repository,
  env: { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1', CLAUDE_CODE_MCP_RESUME_SECRET: 'secret' },
  args: ['--allowed-dirs', '.'],
});

it('parallel sessions affect neither each other nor the checkout; one is applied, the other discarded', async () => {
  const h = shared();
  const git = gitIn(h);
  writeFileSync(join(h.project, 'a.txt'), 'one\nwhat the user is writing\n');
  const before = git('status', '--porcelain');
  h.model.on('first way').reply(bash('echo first > b.txt && cat a.txt'), text('done'));
  h.model.on('second way').reply(bash('echo second > b.txt && git add b.txt && git commit -qm two'), text('done'));
  h.model.on('go on').reply(bash('cat b.txt && echo more >> b.txt'), text('went on'));
  const [one, two] = await Promise.all(
    ['first way', 'second way'].map((prompt) => h.ok('claude_code', { prompt, ...ALLOWED, ...WORKTREE })),
  );
  expect(one.workspace).toEqual({
    path: expect.stringContaining(join('worktrees', 'project-')),
    branch: `claude/${one.sessionId.slice(0, 8)}`,
    base: git('branch', '--show-current'),
  });
  expect(one.effective).toContain(one.workspace.path);
  expect(readFileSync(join(one.workspace.path, 'a.txt'), 'utf8')).toBe('one\n');
  for (const { result } of [one, two]) expect(result.work).toMatchObject({ filesChanged: 1, insertions: 1 });
  expect(one.result.work).not.toHaveProperty('shared');
  expect(git('status', '--porcelain')).toBe(before);

  const shown = await manage(h, 'diff', one.sessionId);
  expect(shown.diff).toMatchObject({ filesChanged: 1, files: [{ path: 'b.txt', status: 'added' }] });
  expect(shown.diff.diff).toContain('+first');
  const page = await manage(h, 'diff', one.sessionId, { maxBytes: 30 });
  const rest = await manage(h, 'diff', one.sessionId, { offset: page.diff.nextOffset });
  expect(`${page.diff.diff}${rest.diff.diff}`).toBe(shown.diff.diff);

  const applied = await manage(h, 'apply', one.sessionId, { mode: 'squash', message: 'take the first way' });
  expect(applied.message).toContain('Applied (squash)');
  expect(readFileSync(join(h.project, 'b.txt'), 'utf8')).toBe('first\n');
  expect(readFileSync(join(h.project, 'a.txt'), 'utf8')).toContain('what the user is writing');
  expect(git('log', '-1', '--format=%s')).toBe('take the first way');
  expect(applied.sessions[0].workspace).toMatchObject({ state: 'merged' });
  const after = await h.ok('claude_code_reply', { sessionId: one.sessionId, prompt: 'go on', waitMs: 40_000 });
  expect(after.result).toMatchObject({ result: 'went on', work: { filesChanged: 1, insertions: 1 } });

  const { sessions } = await h.ok('claude_code_session', { action: 'list' });
  const byId = (id: string): Json => sessions.find(({ sessionId }: Json) => sessionId === id).workspace;
  expect([byId(one.sessionId), byId(two.sessionId)]).toMatchObject([
    { state: 'unmerged', uncommittedFiles: 1 },
    { state: 'unmerged', unmergedCommits: 1 },
  ]);
  const refused = { action: 'discard', sessionId: two.sessionId };
  expect(await h.fails('claude_code_session', refused, 'INVALID_ARGUMENT')).toContain('1 commit(s)');
  const gone = await manage(h, 'discard', two.sessionId, { force: true });
  expect(gone.message).toContain(`Kept: ${two.workspace.branch}`);
  expect(gone.sessions[0].workspace).toEqual({ state: 'removed' });
  expect(existsSync(two.workspace.path)).toBe(false);
  expect(git('show', `${two.workspace.branch}:b.txt`)).toBe('second');
  const reply = { sessionId: two.sessionId, prompt: 'go on' };
  expect(await h.fails('claude_code_reply', reply, 'INVALID_ARGUMENT')).toContain('worktree of this session is gone');
});

it('a failed start leaves no worktree or branch behind', async () => {
  const h = shared();
  const git = gitIn(h);
  const [worktrees, branches] = [git('worktree', 'list'), git('branch', '--list', 'claude/*')];
  const asked = { prompt: 'never', advanced: { workspace: { type: 'worktree', base: 'no-such-branch' } } };
  expect(await h.fails('claude_code', asked, 'INVALID_ARGUMENT')).toContain('no-such-branch');
  const broken = { ...WORKTREE.advanced, pathToClaudeCodeExecutable: process.execPath, sessionInitTimeoutMs: 300 };
  expect(await h.call('claude_code', { prompt: 'never', advanced: broken })).toMatchObject({ isError: true });
  expect(git('worktree', 'list')).toBe(worktrees);
  expect(git('branch', '--list', 'claude/*')).toBe(branches);
});

it('a fork works in its own worktree, which begins at the same commit', async () => {
  const h = shared();
  h.model
    .on('begin')
    .reply(bash('echo x > e.txt && git add e.txt && git commit -qm e && echo y > c.txt'), text('begun'));
  h.model.on('and then').reply(bash('cat e.txt; echo z > d.txt; ls'), text('forked'));
  const original = await h.ok('claude_code', { prompt: 'begin', ...ALLOWED, ...WORKTREE });
  const { sessionId } = original;
  const fork = await h.ok('claude_code_reply', { sessionId, prompt: 'and then', forkSession: true, waitMs: 40_000 });
  expect(fork).toMatchObject({ status: 'idle', result: { result: 'forked', work: { filesChanged: 1 } } });
  expect(fork.workspace).toMatchObject({ base: original.workspace.base });
  expect(fork.workspace.path).not.toBe(original.workspace.path);
  expect(fork.warnings.join()).toContain('are not included');
  expect(existsSync(join(original.workspace.path, 'd.txt'))).toBe(false);
  expect((await manage(h, 'diff', fork.sessionId)).diff.files.map(({ path }: Json) => path)).toEqual([
    'd.txt',
    'e.txt',
  ]);
});

// Last with this server, because a restart forgets the sessions.
it('a worktree outlives its session, and a resume from disk finds it, even with ALLOWED_DIRS', async () => {
  const h = shared();
  h.model.on('begin').reply(bash('echo x > kept.txt && pwd'), text('begun'));
  h.model.on('go on').reply(tool('Read', { file_path: 'kept.txt' }), bash('cat kept.txt'), text('went on'));
  const begun = await h.ok('claude_code', { prompt: 'begin', ...ALLOWED, ...WORKTREE });
  const { sessionId, resumeToken, workspace } = begun;
  // Only its own session may work there.
  await h.fails('claude_code', { prompt: 'never', cwd: workspace.path }, 'PERMISSION_DENIED');
  await h.restartServer();
  const { sessions, worktrees } = await h.ok('claude_code_session', { action: 'list' });
  expect(sessions).toEqual([]);
  const onDisk = await h.ok('claude_code_session', { action: 'list', scope: 'disk' });
  const its = (all: Json[]): Json[] => all.filter((one) => one.sessionId === sessionId);
  expect(its(onDisk.sessions)).toHaveLength(1);
  const left = { branch: workspace.branch, state: 'unmerged', uncommittedFiles: 1 };
  expect(its(worktrees)).toMatchObject([left]);
  expect((await manage(h, 'diff', sessionId)).diff.diff).toContain('+x');
  const resumed = await h.ok('claude_code_reply', { sessionId, resumeToken, prompt: 'go on', ...ALLOWED });
  expect(resumed).toMatchObject({
    status: 'idle',
    workspace,
    result: { result: 'went on', work: { commandsFailed: 0 } },
  });
});

/** Claude's tools are pre-approved, so that all forms are about what happens to its work. */
const UNDER_HUMAN: HarnessOptions = {
  ...repository,
  env: { CLAUDE_CODE_MCP_APPROVALS: 'human' },
  settings: { permissions: { allow: ['Bash', 'Read', 'Edit'] } },
};

/** A session that has edited one file and made another, and the call that would rewind the edit. */
async function startWork(h: Harness) {
  let file = '';
  h.model.on('begin').reply(
    bash('pwd'),
    ({ toolResults }) => {
      file = join(toolResults[0]!.text.trim(), 'a.txt');
      return tool('Read', { file_path: file });
    },
    () => tool('Edit', { file_path: file, old_string: 'one', new_string: 'two' }),
    bash('echo x > b.txt'),
    text('begun'),
  );
  const advanced = { ...WORKTREE.advanced, enableFileCheckpointing: true };
  const { sessionId, workspace } = await h.ok('claude_code', { prompt: 'begin', waitMs: 40_000, advanced });
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, responseMode: 'full' });
  const [toUserMessage] = events.findLast(({ type }: Json) => type === 'result').data.user_message_uuids;
  const rewind = { action: 'rewind', sessionId, toUserMessage, dryRun: false };
  expect(file).toBe(join(workspace.path, 'a.txt'));
  return { sessionId, workspace, rewind, file, content: () => readFileSync(file, 'utf8') };
}

describe.each(ERAS)('with APPROVALS=human, in a %s client', (era) => {
  it('the person decides on rewind, discard and apply; the call returns at once', async () => {
    const person = new SlowPerson();
    const h = await startHarness({ ...UNDER_HUMAN, era, form: person.form });
    const { sessionId, workspace, rewind, file, content } = await startWork(h);
    let forms = 0;
    /** Makes the call, has the person answer the form, and waits for what becomes of it. */
    const decide = async (args: object, answer: FormAnswer, look?: (form: string) => unknown): Promise<Json> => {
      const asked = await h.ok('claude_code_session', { sessionId, ...args });
      expect(asked).toMatchObject({ status: 'waiting_permission', requestId: expect.any(String) });
      // In the modern era only a waiting call can carry the form.
      const waiting = h.ok('claude_code_check', { action: 'wait', sessionId });
      const form = await person.nextForm(forms++);
      await look?.(form.request.message);
      form.answer(answer);
      const { status, lastAction } = await waiting;
      expect(status).toBe('idle');
      expect(lastAction.requestId).toBe(asked.requestId);
      expect((await manage(h, 'get', sessionId)).sessions[0].lastAction).toEqual(lastAction);
      return lastAction;
    };
    expect(await h.ok('claude_code_session', { ...rewind, dryRun: true })).toMatchObject({
      sessions: [{ status: 'idle' }],
    });
    expect(await decide(rewind, decline)).toMatchObject({
      action: 'rewind',
      outcome: 'denied',
      message: expect.stringContaining('The user refused this'),
    });
    expect(content()).toBe('two\n');

    const rewound = await decide(rewind, allowOnce, async (form) => {
      expect(form).toContain('The caller wants to rewind 1 file(s)');
      expect(form).toContain(file);
      const { status, actions } = await h.ok('claude_code_check', { action: 'poll', sessionId });
      expect(status).toBe('waiting_permission');
      expect(actions).toMatchObject([
        { type: 'permission', toolName: 'Rewind', asShown: true, input: { files: [file] } },
      ]);
      await h.fails('claude_code_reply', { sessionId, prompt: 'never', whenBusy: 'queue' }, 'SESSION_BUSY');
      await h.fails('claude_code_session', { action: 'apply', sessionId }, 'SESSION_BUSY');
      expect(content()).toBe('two\n');
    });
    expect(rewound).toMatchObject({ outcome: 'rewound', message: `Restored 1 file(s): ${file} (+1 -1).` });
    expect(content()).toBe('one\n');

    const refused = await decide({ action: 'discard', force: true }, decline);
    expect(refused).toMatchObject({ action: 'discard', outcome: 'denied' });
    expect(refused.message).toContain('Nothing was changed');
    expect(existsSync(workspace.path)).toBe(true);
    const git = gitIn(h);
    let shown = '';
    const applied = await decide({ action: 'apply' }, allowOnce, (form) => {
      expect(form).toContain('wants to apply the work of a session (1 file(s), +1 -0)');
      for (const part of ['added b.txt', '+x', 'Uncommitted work of Claude Code session']) expect(form).toContain(part);
      shown = /^commit: ([0-9a-f]{40})$/m.exec(form)?.[1] ?? '';
      expect(existsSync(join(h.project, 'b.txt'))).toBe(false);
      // What a background command writes in the meantime was not shown, and is not applied.
      writeFileSync(join(workspace.path, 'b.txt'), 'y\n');
      writeFileSync(join(workspace.path, 'later.txt'), 'z\n');
    });
    expect(applied).toMatchObject({ action: 'apply', outcome: 'applied' });
    expect(applied.message).toMatch(/Applied \(merge\).* Later work stays in the worktree .*: b\.txt, later\.txt\. /);
    expect(git('rev-parse', 'HEAD')).toBe(shown);
    expect(readFileSync(join(h.project, 'b.txt'), 'utf8')).toBe('x\n');
    expect(existsSync(join(h.project, 'later.txt'))).toBe(false);
    expect(existsSync(join(workspace.path, 'later.txt'))).toBe(true);

    // What was to be discarded has changed: the person is asked again, about the new work too.
    const discard = await manage(h, 'discard', sessionId, { force: true });
    const waiting = h.ok('claude_code_check', { action: 'wait', sessionId });
    const first = await person.nextForm(4);
    writeFileSync(join(workspace.path, 'latest.txt'), 'z\n');
    first.answer(allowOnce);
    const second = await person.nextForm(5);
    expect(second.request.message).toContain('The worktree has changed since this was allowed.');
    expect(second.request.message).toContain('added latest.txt');
    second.answer(allowOnce);
    const { lastAction } = await waiting;
    expect(lastAction).toMatchObject({ action: 'discard', outcome: 'discarded' });
    expect(lastAction.requestId).not.toBe(discard.requestId);
    expect(existsSync(workspace.path)).toBe(false);
    expect(git('show', `${workspace.branch}:latest.txt`)).toBe('z');
    const decisions = await auditedEntries(h, ({ kind, who }) => kind === 'decision' && who === 'human', 6);
    expect(decisions).toMatchObject([
      { what: 'Rewind', outcome: 'deny' },
      { what: 'Rewind', outcome: 'allow' },
      { what: 'Discard', outcome: 'deny' },
      { what: 'Apply', outcome: 'allow' },
      { what: 'Discard', outcome: 'allow' },
      { what: 'Discard', outcome: 'allow' },
    ]);
    expect(person.shown).toHaveLength(6);
    const reply = { sessionId, prompt: 'never' };
    expect(await h.fails('claude_code_reply', reply, 'INVALID_ARGUMENT')).toContain('Start a new session');
  });
});

it('with APPROVALS=human, nothing is rewound, applied or discarded when nobody can be asked', async () => {
  const h = await startHarness(UNDER_HUMAN);
  const { sessionId, rewind, content } = await startWork(h);
  expect(await h.fails('claude_code_session', rewind, 'PERMISSION_DENIED')).toContain('cannot show a form');
  expect(content()).toBe('two\n');
  for (const args of [{ action: 'apply' }, { action: 'discard', force: true }])
    expect(await h.fails('claude_code_session', { sessionId, ...args }, 'PERMISSION_DENIED')).toContain('form');
  // The session still works, and nobody has to be asked to discard a worktree without changes.
  h.model.on('undo it').reply(bash('git checkout a.txt && rm b.txt'), text('undone'));
  const reply = { sessionId, prompt: 'undo it', waitMs: 40_000 };
  expect(await h.ok('claude_code_reply', reply)).toMatchObject({ status: 'idle', result: { result: 'undone' } });
  await manage(h, 'diff', sessionId);
  await manage(h, 'discard', sessionId);
});

async function allowUntilRest(h: Harness, sessionId: string): Promise<void> {
  for (;;) {
    const now = await h.waitFor(sessionId, ({ status }) => status !== 'running');
    if (now.status !== 'waiting_permission') return;
    await h.allow(sessionId);
  }
}

const canSandbox = process.platform === 'linux' && missingSandboxPackages(process).length === 0;

describe.skipIf(!canSandbox)('in the sandbox', () => {
  it('a session can work and commit in its worktree, but reaches neither the repository’s other git files nor the server’s own', async () => {
    const h = await startHarness({ ...repository, args: ['--sandbox', '--allow-bypass'] });
    const git = gitIn(h);
    const state = join(h.stateDir, 'claude-code-mcp');
    const script = h.model
      .on('commit')
      .reply(
        tool('Write', { file_path: 'b.txt', content: 'written\n' }),
        bash('cat a.txt && git add b.txt && git commit -qm inside && git log -1 --format=%s'),
        bash('git config user.name evil'),
        bash(`echo x > ${join(h.project, '.git', 'hooks', 'post-commit')}`),
        bash(`cat ${join(state, 'audit.jsonl')}`),
        bash('git tag mine'),
        bash(`echo >> ${join(h.project, '.git', 'index')}`),
        bash(`echo >> ${join(h.project, '.git', 'HEAD')}`),
        text('tried'),
      );
    const options = { permissionMode: 'bypassPermissions', ...WORKTREE };
    const { sessionId, workspace } = await h.ok('claude_code', { prompt: 'commit', ...options });
    await allowUntilRest(h, sessionId);
    const results = h.model
      .requestsFor(script)
      .slice(1)
      .flatMap(({ toolResults }) => toolResults);
    expect(results.map(({ isError }) => isError)).toEqual([false, false, true, true, true, true, true, true]);
    expect(results[1]?.text).toContain('inside');
    expect(git('log', '-1', '--format=%s', workspace.branch)).toBe('inside');
    const done = await h.ok('claude_code_check', { action: 'wait', sessionId, pollOptions: { includeWork: 'full' } });
    expect(done.result.work.files.map(({ path }: Json) => path)).toEqual(['b.txt']);
    await manage(h, 'apply', sessionId);
    expect(git('show', '--stat', '--format=', 'HEAD')).toContain('b.txt');
  });
});

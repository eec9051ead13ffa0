/** Several attempts at one task, started, watched and chosen from together. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundledClaudeCode } from '../../src/driver/claude-code-program.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';
import { allowOnce, SlowPerson } from './forms-support.ts';

const bash = (command: string): ReturnType<typeof tool> => tool('Bash', { command, description: 'run' });

function gitIn(h: Harness): (...args: string[]) => string {
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

const shared = shareHarness({ ...repository, env: { CLAUDE_CODE_MCP_MAX_SESSIONS: '3' } });

const idsOf = (sessions: Json[]): string[] => sessions.map(({ sessionId }) => sessionId);

describe('attempts', () => {
  it('start together from one commit, and one call returns when all are at rest', async () => {
    const h = shared();
    const git = gitIn(h);
    // Each waits until the others have begun: started one after another, none would finish.
    const meet = join(h.home, 'meet');
    const joint = (name: string): string =>
      `mkdir -p ${meet} && touch ${meet}/${name} && until [ "$(ls ${meet} | wc -l)" = 3 ]; do sleep 0.05; done; echo ${name} > b.txt`;
    for (const name of ['x', 'y', 'z']) h.model.on(`way ${name}`).reply(bash(joint(name)), text(`did ${name}`));
    writeFileSync(join(h.project, 'a.txt'), 'changed by the user\n');
    const started = await h.ok('claude_code', {
      prompt: 'way x',
      attempts: [{}, { prompt: 'way y' }, { prompt: 'way z', model: 'haiku' }],
      allowedTools: ['Bash'],
      waitMs: 60_000,
    });
    git('checkout', '--quiet', '--', 'a.txt');
    expect(started).toMatchObject({
      sessionId: started.attempts[0].sessionId,
      status: 'idle',
      attempts: ['x', 'y', 'z'].map((name) => ({
        status: 'idle',
        workspace: { base: git('branch', '--show-current'), path: expect.any(String), branch: expect.any(String) },
        result: { result: `did ${name}`, work: { filesChanged: 1 } },
      })),
    });
    expect(started.warnings.join()).toContain('Uncommitted changes in the checkout are in none of the attempts: a.txt');
    const head = git('rev-parse', 'HEAD');
    for (const { workspace } of started.attempts) expect(git('rev-parse', workspace.branch)).toBe(head);
    const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId: started.attempts[2].sessionId });
    expect(sessions[0].model).toContain('haiku');
  });

  it('is refused as a whole when there are not enough places, and leaves nothing', async () => {
    const h = shared();
    const git = gitIn(h);
    const before = [git('worktree', 'list'), git('branch', '--list')];
    const { sessions: known } = await h.ok('claude_code_session', { action: 'list' });
    const error = await h.fails('claude_code', { prompt: 'never', attempts: 4 }, 'TOO_MANY_SESSIONS');
    expect(error).toContain('4 sessions are to start together, and there is room for 3');
    expect([git('worktree', 'list'), git('branch', '--list')]).toEqual(before);
    expect((await h.ok('claude_code_session', { action: 'list' })).sessions).toHaveLength(known.length);
  });

  it.each([
    [{ attempts: 1 }, 'attempts'],
    [{ attempts: 9 }, 'attempts'],
    [{ attempts: [{}, { cwd: '/' }] }, 'cwd'],
    [{ attempts: 2, advanced: { workspace: { type: 'worktree', branch: 'mine' } } }, 'workspace.branch'],
  ])('%j is an invalid argument', async (args, named) => {
    expect(await shared().fails('claude_code', { prompt: 'never', ...args }, 'INVALID_ARGUMENT')).toContain(named);
  });

  it('outside a repository is an invalid argument', async () => {
    const h = shared();
    expect(await h.fails('claude_code', { prompt: 'never', cwd: h.home, attempts: 2 }, 'INVALID_ARGUMENT')).toContain(
      'git repository',
    );
  });
});

/** Two attempts that wrote different files, one of them committed. */
async function twoAttempts(h: Harness): Promise<{ one: Json; two: Json }> {
  h.model
    .on('commit it')
    .reply(bash('echo 1 > one.txt && git add . && git commit -qm one'), text('Committed.\nAll good.'));
  h.model.on('leave it').reply(bash(`seq 2000 > two.txt`), text('Left it.'));
  const started = await h.ok('claude_code', {
    prompt: 'commit it',
    attempts: [{}, { prompt: 'leave it' }],
    allowedTools: ['Bash'],
    waitMs: 60_000,
  });
  const [one, two] = started.attempts;
  return { one, two };
}

const manage = (h: Harness, args: Readonly<Record<string, unknown>>): Promise<Json> =>
  h.ok('claude_code_session', args);

describe('the work of several attempts', () => {
  it('is compared in one call, applied, and the others discarded with it', async () => {
    const h = shared();
    const git = gitIn(h);
    const { one, two } = await twoAttempts(h);
    const sides = await manage(h, { action: 'compare', sessionId: two.sessionId, options: { maxBytes: 2_000 } });
    expect(sides.sessions).toMatchObject([
      { sessionId: one.sessionId, status: 'idle', claim: 'Committed.', work: { filesChanged: 1 } },
      { sessionId: two.sessionId, status: 'idle', claim: 'Left it.', nextOffset: expect.any(Number) },
    ]);
    expect(sides.sessions[0].diff).toContain('+1\n');
    expect(sides.sessions[0]).not.toHaveProperty('nextOffset');
    expect(Buffer.byteLength(sides.sessions[1].diff)).toBeLessThanOrEqual(1_000);
    const named = await manage(h, { action: 'compare', sessionIds: [two.sessionId, 'nobody'] });
    expect(named.sessions).toMatchObject([
      { sessionId: two.sessionId, claim: 'Left it.' },
      { sessionId: 'nobody', isError: true, error: expect.stringContaining('SESSION_NOT_FOUND') },
    ]);

    writeFileSync(join(h.project, 'a.txt'), 'changed by the user\n');
    const before = git('rev-parse', 'HEAD');
    const applied = await manage(h, { action: 'apply', sessionId: one.sessionId, options: { discardOthers: true } });
    git('checkout', '--quiet', '--', 'a.txt');
    expect(applied.sessions).toEqual([
      { sessionId: one.sessionId, workspace: expect.objectContaining({ state: 'merged' }) },
    ]);
    expect(applied.applied).toEqual({
      mode: 'merge',
      result: 'fast-forward',
      branch: git('branch', '--show-current'),
      checkout: expect.any(String),
      before,
      after: git('rev-parse', one.workspace.branch),
      leftAlone: ['a.txt'],
      remains: {
        worktree: one.workspace.path,
        branch: one.workspace.branch,
        remove: expect.stringContaining('"discard"'),
      },
      others: [
        { sessionId: two.sessionId, outcome: 'discarded', message: expect.stringContaining(two.workspace.branch) },
      ],
    });
    expect(applied.message).toMatch(/^Applied \(merge\) to /);
    expect(applied.message).not.toContain(two.sessionId);
    expect(git('rev-parse', 'HEAD')).toBe(applied.applied.after);
    expect(existsSync(two.workspace.path)).toBe(false);
    expect(git('show', `${two.workspace.branch}:two.txt`)).toContain('2000');
    await manage(h, { action: 'discard', sessionId: one.sessionId });
    git('reset', '--quiet', '--hard', before);
    git('branch', '--quiet', '-D', two.workspace.branch);
  });

  it('is discarded in one call, with the branches; their commits stay for a while', async () => {
    const h = shared();
    const git = gitIn(h);
    const { one, two } = await twoAttempts(h);
    const tip = git('rev-parse', one.workspace.branch);
    // Somebody else moves the second branch: it is not the server's to delete.
    git('update-ref', `refs/heads/${two.workspace.branch}`, git('commit-tree', '-m', 'other', 'HEAD^{tree}'));
    const sessionIds = [one.sessionId, two.sessionId, 'nobody'];
    await h.fails(
      'claude_code_session',
      { action: 'discard', sessionId: one.sessionId, deleteBranch: true },
      'INVALID_ARGUMENT',
    );
    const { sessions } = await manage(h, {
      action: 'discard',
      sessionIds,
      options: { force: true, deleteBranch: true },
    });
    expect(sessions).toMatchObject([
      { sessionId: one.sessionId, workspace: { state: 'removed' }, message: expect.stringContaining(tip) },
      {
        sessionId: two.sessionId,
        workspace: { state: 'removed' },
        message: expect.stringContaining(`Kept: ${two.workspace.branch}`),
      },
      { sessionId: 'nobody', isError: true, error: expect.stringContaining('SESSION_NOT_FOUND') },
    ]);
    expect(git('branch', '--list', one.workspace.branch)).toBe('');
    expect(git('rev-parse', `refs/claude/discarded/${one.sessionId}`)).toBe(tip);
    git('branch', '--quiet', '-D', two.workspace.branch);
    const cancelled = await manage(h, { action: 'cancel', sessionIds });
    expect(cancelled.sessions).toMatchObject([{ status: 'cancelled' }, { status: 'cancelled' }, { isError: true }]);
  });

  it('of one session alone is not compared', async () => {
    const h = shared();
    h.model.on('hello').reply(text('hi'));
    const sessionId = await h.converse('hello');
    expect(await h.fails('claude_code_session', { action: 'compare', sessionId }, 'INVALID_ARGUMENT')).toContain(
      'sessionIds',
    );
    await h.fails('claude_code_session', { action: 'apply', sessionId, discardOthers: true }, 'INVALID_ARGUMENT');
    await h.fails('claude_code_session', { action: 'diff', sessionIds: [sessionId] }, 'INVALID_ARGUMENT');
  });

  it('is not discarded by a call that asks for a dry run', async () => {
    const discard = { action: 'discard', sessionId: 'any', options: { force: true, dryRun: true } };
    expect(await shared().fails('claude_code_session', discard, 'INVALID_ARGUMENT')).toContain(
      'dryRun is only valid with action "rewind"',
    );
  });
});

describe('a list of sessions', () => {
  it('is answered when one asks; requests that do not fit are named; an unknown session is an entry', async () => {
    const h = shared();
    const long = 'x'.repeat(6_000);
    h.model.on('ask first').reply(bash(`echo ${long} > c.txt`), text('first'));
    h.model.on('ask second').reply(bash(`echo second ${long} > c.txt`), text('second'));
    const { attempts } = await h.ok('claude_code', { prompt: 'ask first', attempts: [{}, { prompt: 'ask second' }] });
    const sessionIds = idsOf(attempts);
    const asked = await h.ok('claude_code_check', { action: 'wait', sessionIds: [...sessionIds, 'nobody'] });
    expect(asked.sessions[2]).toMatchObject({
      sessionId: 'nobody',
      isError: true,
      error: expect.stringContaining('SESSION_NOT_FOUND'),
    });
    expect(asked.sessions.some(({ actions }: Json) => actions?.length === 1)).toBe(true);
    for (const sessionId of sessionIds) await h.ok('claude_code_check', { action: 'wait', sessionId });
    const polled = await h.ok('claude_code_check', {
      action: 'poll',
      sessionIds,
      includeEvents: false,
      maxBytes: 12_000,
    });
    const actions = polled.sessions.flatMap((one: Json) => one.actions);
    expect(actions.filter(({ omitted }: Json) => omitted)).toEqual([
      { requestId: expect.any(String), toolName: 'Bash', omitted: true },
    ]);
    expect(actions.find(({ omitted }: Json) => !omitted).input.command).toContain(long);
    expect(polled.sessions.find(({ actions: [one] }: Json) => one.omitted).truncatedFields).toEqual(['actions']);

    const answer = (index: number): Promise<Json> =>
      h.ok('claude_code_check', {
        action: 'respond_permission',
        sessionId: sessionIds[index],
        requestId: actions[index].requestId,
        decision: 'deny',
      });
    await answer(0);
    // The other still asks, so that a wait for both would return at once; the answered one rests meanwhile.
    await h.waitUntilRest(sessionIds[0]!);
    const waiting = h.ok('claude_code_check', { action: 'wait', sessionIds, waitFor: 'any' });
    expect((await waiting).sessions.map(({ status }: Json) => status)).toEqual(['idle', 'waiting_permission']);
    await answer(1);
    const rested = await h.ok('claude_code_check', { action: 'wait', sessionIds });
    expect(rested.sessions.map(({ result }: Json) => result.result)).toEqual(['first', 'second']);
  });

  it('with waitFor "any" is answered when one comes to rest', async () => {
    const h = shared();
    const go = join(h.home, 'go');
    h.model.on('short').reply(bash(`until [ -f ${go} ]; do sleep 0.05; done`), text('short'));
    h.model.on('long').reply(bash(`until [ -f ${go}2 ]; do sleep 0.05; done`), text('long'));
    const allowed = { allowedTools: ['Bash'] };
    const started = await h.ok('claude_code', { prompt: 'short', attempts: [{}, { prompt: 'long' }], ...allowed });
    const sessionIds = idsOf(started.attempts);
    const any = h.ok('claude_code_check', { action: 'wait', sessionIds, waitFor: 'any' });
    writeFileSync(go, '');
    expect((await any).sessions.map(({ status }: Json) => status)).toEqual(['idle', 'running']);
    const all = h.ok('claude_code_check', { action: 'wait', sessionIds });
    writeFileSync(`${go}2`, '');
    expect((await all).sessions.map(({ status }: Json) => status)).toEqual(['idle', 'idle']);
  });

  it.each([
    { cursor: 1 },
    { toolUseID: 'a' },
    { pollOptions: { resultOffset: 1 } },
    { action: 'respond_permission', requestId: 'a', decision: 'allow' },
    { sessionId: 'a' },
  ])('%j is refused with it', async (args) => {
    await shared().fails('claude_code_check', { action: 'wait', sessionIds: ['a'], ...args }, 'INVALID_ARGUMENT');
  });
});

it('an attempt that cannot start takes the others with it, except for their changes', async () => {
  const h = await startHarness(repository);
  const git = gitIn(h);
  const claude = bundledClaudeCode(process.platform, process.arch)?.executable;
  const marker = join(h.home, 'worked');
  // The first one to be started fails, once the other has changed a file.
  const program = join(h.home, 'claude');
  const fails = `mkdir "$0.first" 2>/dev/null && { until [ -e ${marker} ]; do sleep 0.05; done; echo 'no licence' >&2; exit 1; }`;
  writeFileSync(program, `#!/bin/sh\n${fails}\nexec "${claude!}" "$@"\n`, { mode: 0o755 });
  h.model.on('try').reply(bash(`echo kept > b.txt && touch ${marker}`), text('done'));
  const advanced = { pathToClaudeCodeExecutable: program };
  const args = { prompt: 'try', attempts: 2, allowedTools: ['Bash'], advanced };
  const { isError, data } = await h.call('claude_code', args);
  expect([isError, data.sessionId, data.status]).toEqual([true, '', 'error']);
  expect(data.error).toContain(
    'no licence. The attempts that had started were cancelled. Worktrees with changes stay: ',
  );
  const [, left, ...more] = git('worktree', 'list', '--porcelain').match(/^worktree .*/gm)!;
  expect(more).toEqual([]);
  const worktree = left!.replace('worktree ', '');
  expect(data.error).toContain(worktree);
  expect(readFileSync(join(worktree, 'b.txt'), 'utf8')).toBe('kept\n');
  const { sessions } = await h.ok('claude_code_session', { action: 'list' });
  // Not by the caller, who asked for nothing of the kind.
  expect(sessions).toMatchObject([{ status: 'cancelled', cancelledSource: 'cleanup' }]);
});

it('DENY_OPTIONS=workspace covers attempts', async () => {
  const h = await startHarness({ ...repository, env: { CLAUDE_CODE_MCP_DENY_OPTIONS: 'workspace' } });
  expect(await h.fails('claude_code', { prompt: 'never', attempts: 2 }, 'PERMISSION_DENIED')).toContain('workspace');
});

it('forms of several sessions come with one waiting call of a modern client', async () => {
  const person = new SlowPerson();
  const h = await startHarness({ ...repository, era: 'modern', form: person.form });
  for (const name of ['x', 'y']) h.model.on(`way ${name}`).reply(bash(`touch ${name}.txt`), text(`did ${name}`));
  const started = h.ok('claude_code', { prompt: 'way x', attempts: [{}, { prompt: 'way y' }], waitMs: 60_000 });
  (await person.nextForm(0)).answer(allowOnce);
  (await person.nextForm(1)).answer(allowOnce);
  const { attempts } = await started;
  expect(attempts.map(({ result }: Json) => result.result)).toEqual(['did x', 'did y']);
  for (const [index, name] of ['x', 'y'].entries())
    expect(existsSync(join(attempts[index].workspace.path, `${name}.txt`))).toBe(true);
  expect((await h.ok('claude_code_session', { action: 'list' })).sessions).toHaveLength(2);
});

/** What a result reports about the work, based on git and the tool calls. */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { gate, text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { sharedHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { writesPlan } from './asked-of-people.ts';
import { auditedEntries } from './forms-support.ts';
import { verifies } from './requirements.ts';
import { check } from './steps.ts';

const bash = (command: string): ReturnType<typeof tool> => tool('Bash', { command, description: 'run' });

/** A repository with pre-approved tools, so that most tests can share one conversation. */
const REPOSITORY = { git: true, settings: { permissions: { allow: ['Bash', 'Write'] } } };

const shared = (): Promise<Harness> => sharedHarness({ ...REPOSITORY, era: 'modern', toolset: 'compact' });

/** The result, once git has had the time that it needs on a busy machine. */
function reported(h: Harness, sessionId: string): Promise<Json> {
  const what = 'the work report is complete';
  return eventually(
    async () => {
      const state = await h.waitUntilRest(sessionId);
      const told = h.toolset === 'compact' ? state.result : state;
      return told.work.incomplete === undefined && told;
    },
    { what },
  );
}

const snapshotsOf = ({ stateDir }: Harness): string => join(stateDir, 'claude-code-mcp', 'snapshots');

verifies('work.report', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(REPOSITORY);
  writeFileSync(join(h.project, 'mine.txt'), 'what the user had not committed\n');
  const write = tool('Write', { file_path: join(h.project, 'new.txt'), content: 'one\ntwo\n' });
  h.model.on('work on it').reply(write, bash('echo three > moved.txt'), bash('make test'), text('All tests pass.'));
  const sessionId = await h.converse('work on it');
  const { work } = await reported(h, sessionId);
  expect(work).toMatchObject({
    filesChanged: 2,
    insertions: 3,
    deletions: 0,
    files: [
      { path: 'new.txt', insertions: 2, deletions: 0, status: 'added' },
      { path: 'moved.txt', insertions: 1, deletions: 0, status: 'added' },
    ],
    commandsRun: 2,
    commandsFailed: 1,
    lastCheck: { command: 'make test', exitCode: 2, afterLastEdit: true, tail: expect.stringContaining('test') },
    git: { branch: 'main', commits: [], uncommitted: { count: 3, paths: ['mine.txt', 'moved.txt', 'new.txt'] } },
    problems: [{ tool: 'Bash', what: 'make test', outcome: 'failed' }],
  });
  expect(work).not.toHaveProperty('shared');
  expect(work.diff).toContain('+++ b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n');
  const { problems: _, diff, ...report } = work;
  expect(Buffer.byteLength(JSON.stringify(report))).toBeLessThanOrEqual(1200);
  expect(Buffer.byteLength(JSON.stringify(diff))).toBeLessThanOrEqual(1000);
  const ended = await auditedEntries(h, ({ kind, session }) => kind === 'end' && session === sessionId);
  expect(ended).toMatchObject([
    { details: { filesChanged: 2, insertions: 3, commandsRun: 2, commandsFailed: 1, lastCheckExitCode: 2 } },
  ]);
  expect(readdirSync(snapshotsOf(h))).toEqual([sessionId]);
});

verifies('work.attention', { eras: ['modern'] }, async (variant) => {
  const h = await variant.share(REPOSITORY);
  const write = (name: string, content: string): ReturnType<typeof tool> =>
    tool('Write', { file_path: join(h.project, name), content });
  const cases: [string, MessageReply[], string[]][] = [
    [
      'Committed.',
      [bash('git commit -qm done -- missing.txt')],
      [
        'git commit was run, but no commit was made.',
        'The last command failed (exit 1): git commit -qm done -- missing.txt',
      ],
    ],
    [
      'All tests pass.',
      [write('sum.mjs', 'export const sum = (a, b) => a + b;\n')],
      ['Files changed, but no test, build, lint or type check was run.'],
    ],
    [
      'Fixed: the test passes.',
      [write('sum.test.mjs', "import 'node:test';\n"), bash('node --test sum.test.mjs')],
      ['Test files changed: sum.test.mjs'],
    ],
    [
      'Committed, all tests pass.',
      [write('b.txt', 'b\n'), bash('git add b.txt && git commit -qm "Add b" && git rev-parse HEAD')],
      ['Files changed, but no test, build, lint or type check was run.', '1 commit was made.'],
    ],
  ];
  for (const [claim, calls, expected] of cases) {
    h.model.on(`say ${claim}`).reply(...calls, text(claim));
    const sessionId = await h.converse(`say ${claim}`);
    const told = await reported(h, sessionId);
    expect(told).toMatchObject({ attention: expected, result: claim, work: { attention: expected } });
    // A reader meets the facts before the claim.
    expect(Object.keys(told).indexOf('attention')).toBeLessThan(Object.keys(told).indexOf('result'));
    const { git, lastCheck, lastCommand } = told.work;
    if (claim === 'Fixed: the test passes.') expect(lastCheck).toMatchObject({ exitCode: 0, tail: 'pass 1, fail 0' });
    else expect(lastCheck).toBeNull();
    const commits = claim.startsWith('Committed, ') ? [{ sha: lastCommand.tail, subject: 'Add b' }] : [];
    expect(git.commits).toEqual(commits);
    if (commits.length > 0) expect(git.head).toBe(lastCommand.tail);
  }
});

it('the report says when another session worked in the same checkout', async () => {
  const h = await shared();
  mkdirSync(join(h.project, 'sub'));
  const held = gate(text('slow is done'));
  h.model.on('slow').reply(bash('echo slow > slow.txt'), held);
  h.model.on('quick').reply(bash('echo quick > quick.txt'), text('quick is done'));
  const slow = await h.converse('slow');
  await held.arrived;
  const quick = await h.ok('claude_code', { prompt: 'quick', cwd: join(h.project, 'sub'), waitMs: 40_000 });
  expect(quick.result.work).toMatchObject({ filesChanged: 1, shared: true });
  held.release();
  expect((await h.waitUntilRest(slow)).result.work).toMatchObject({ filesChanged: 2, shared: true });
});

it('the report counts what each call changed, and lists everything on request', async () => {
  const h = await shared();
  const names = Array.from({ length: 30 }, (_, index) => `file-with-a-long-name-${String(index)}.txt`);
  h.model.on('many').reply(bash(`for f in ${names.join(' ')}; do echo x > $f; done`), text('made'));
  h.model.on('one more').reply(bash(`rm ${names[0]} && echo y >> ${names[1]}`), text('done'));
  h.model.on('only talk').reply(text('talked'));
  const sessionId = await h.converse('many');
  const first = await h.waitUntilRest(sessionId);
  expect(first.result.work).toMatchObject({ filesChanged: 30, insertions: 30, commandsRun: 1 });
  expect(first.result.work.files.length).toBeLessThan(10);
  const full = await check(h, { action: 'wait', sessionId, pollOptions: { includeWork: 'full' } });
  expect(full.result.work.files).toHaveLength(30);
  expect(full.result.work.commands).toMatchObject([{ failed: false }]);

  const second = await h.ok('claude_code_reply', { sessionId, prompt: 'one more', waitMs: 40_000 });
  expect(second.result.work).toMatchObject({ filesChanged: 2, insertions: 1, deletions: 1, commandsRun: 1 });
  // Claude Code says something even of a command that says nothing.
  expect(second.result.work.lastCommand).toMatchObject({ exitCode: 0, tail: '' });
  // The conversation may have begun with another test.
  expect(second.result.work.session.filesChanged).toBeGreaterThanOrEqual(29);
  // Later turns of this session must not use tools: they might count this file as their own.
  writeFileSync(join(h.project, 'by-hand.txt'), 'x');
  const third = await h.ok('claude_code_reply', { sessionId, prompt: 'only talk', waitMs: 40_000 });
  expect(third.result.work).toEqual({
    filesChanged: 0,
    insertions: 0,
    deletions: 0,
    commandsRun: 0,
    commandsFailed: 0,
    lastCheck: null,
    session: second.result.work.session,
  });
});

it('a plan that Claude writes for itself is no work', async () => {
  const h = await shared();
  h.model.on('plan it').reply(writesPlan('# Plan'), text('Planned.'));
  const done = await h.ok('claude_code', { prompt: 'plan it', permissionMode: 'plan', waitMs: 40_000 });
  expect(done.result).toMatchObject({ result: 'Planned.', work: { filesChanged: 0, commandsRun: 0, lastCheck: null } });
  expect(done.result).not.toHaveProperty('attention');
});

it('the report covers what the file tools did where there is no git', async () => {
  const h = await shared();
  const cwd = join(h.home, 'no-repository');
  mkdirSync(cwd);
  const file = join(cwd, 'new.txt');
  h.model.on('write').reply(tool('Write', { file_path: file, content: 'one\ntwo\n' }), text('written'));
  const done = await h.ok('claude_code', { prompt: 'write', cwd, waitMs: 40_000 });
  expect(done.result.work).toMatchObject({
    filesChanged: 1,
    insertions: 2,
    files: [{ path: 'new.txt', insertions: 2, deletions: 0, status: 'added' }],
  });
  expect(readdirSync(cwd)).toEqual(['new.txt']);
});

// Last, because the restart forgets the sessions of the other tests.
it('a new server removes the snapshots of earlier sessions', async () => {
  const h = await shared();
  h.model.on('only talk').reply(text('talked'));
  const sessionId = await h.converse('only talk');
  await h.finish(sessionId);
  expect(readdirSync(snapshotsOf(h))).toContain(sessionId);
  await h.restartServer();
  expect(readdirSync(snapshotsOf(h))).toEqual([]);
});

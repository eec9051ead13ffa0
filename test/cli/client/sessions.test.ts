/** Sessions started, watched and continued from the command line. */

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { httpError, text, tool } from '../../../src/scripted-model/reply.ts';
import { shareHarness } from '../../harness/harness.ts';
import { HAS_TERMINALS, PseudoTerminal } from '../../harness/pseudo-terminal.ts';
import { runCommand, type CommandRun } from '../run-command.ts';

const shared = shareHarness({ hub: { env: { CLAUDE_CODE_MCP_APPROVALS: 'human' } } });

function run(args: readonly string[], env: Record<string, string> = {}): Promise<CommandRun> {
  const h = shared();
  return runCommand(args, { env: h.environment(env), cwd: h.project });
}

it.runIf(HAS_TERMINALS)('a session is started, answered, watched and continued at a terminal', async () => {
  const h = shared();
  const directory = join(h.home, 'elsewhere');
  await mkdir(directory);
  h.model
    .on('start from the terminal')
    .reply(tool('Bash', { command: 'echo "$FROM_TERMINAL" > seen', description: 'x' }), text('It \u001b[31mworked.'));
  h.model.on('say more').reply(text('More of it.'));
  const env = h.environment({ FROM_TERMINAL: 'yes' });
  const starting = await PseudoTerminal.run(['start', '--follow', 'start', 'from', 'the', 'terminal'], {
    env,
    cwd: directory,
  });
  await starting.shows('echo "$FROM_TERMINAL" > seen');
  await starting.shows('a allow');
  starting.type('a');
  await starting.shows('It \\u001b[31mworked.');
  await starting.shows(/done \(\d turns?, /);
  expect(await starting.exited).toBe(0);
  expect(existsSync(join(directory, 'seen'))).toBe(true);

  const [session] = JSON.parse((await run(['sessions', '--json'])).stdout) as { sessionId: string }[];
  const { sessionId } = session!;
  expect(session).toMatchObject({ cwd: directory, owner: { id: 'local' }, status: 'idle' });
  const short = sessionId.slice(0, 8);
  const listed = await run(['sessions']);
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(listed.stdout).toMatch(new RegExp(`^${short}  idle .* ago  start from the terminal · ${directory}$`, 'm'));
  const shown = await run(['show', short]);
  expect(shown.stdout).toMatch(/^started {5}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d$/m);
  expect(shown.stdout).toContain('│ It \\u001b[31mworked.');
  expect(shown.stdout).not.toContain('\u001b');
  expect(JSON.parse((await run(['show', short, '--json'])).stdout)).toMatchObject({ sessionId, result: {} });

  const following = await PseudoTerminal.run(['follow', short], { env, cwd: directory, columns: 90 });
  await following.shows('waiting for the next message');
  // The line that is redrawn fits a window that has become narrower.
  following.resize(24);
  await following.shows(/idle; waiting for ?…/);
  const sending = await PseudoTerminal.run(['send', short, 'say more'], { env, cwd: directory });
  await sending.shows(`Sent to ${sessionId}`);
  expect(await sending.exited).toBe(0);
  await following.shows('say more');
  await following.shows('More of it.');
  following.type('\u0003');
  expect(await following.exited).toBe(130);
});

it.runIf(HAS_TERMINALS)('a key pressed while a session is followed does not answer what it asks later', async () => {
  const h = shared();
  h.model.on('ask nothing').reply(text('Nothing to ask.'));
  h.model.on('ask for a file').reply(tool('Bash', { command: 'touch unseen', description: 'x' }), text('Asked.'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'ask nothing' });
  await h.waitUntilRest(sessionId);
  const following = await PseudoTerminal.run(['follow', sessionId], { env: h.environment(), cwd: h.project });
  await following.shows('waiting for the next message');
  following.type('ay~');
  // The terminal has the keys: it echoes what nobody reads.
  await following.shows('~');
  await h.ok('claude_code_reply', { sessionId, prompt: 'ask for a file' });
  await following.shows('touch unseen');
  await following.shows('a allow');
  following.type('d\r');
  await following.shows('denied by a person');
  following.type('\u0003');
  await following.exited;
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'Asked.' } });
  expect(existsSync(join(h.project, 'unseen'))).toBe(false);
});

it.runIf(HAS_TERMINALS)('text is shown as it is written, once; in a pipe when it is complete', async () => {
  const h = shared();
  const lines = [
    'First \u001b[2Jline.',
    '',
    'A second line that is long enough to be written in several pieces.',
    'The end.',
  ];
  h.model.on('tell a story').reply(text(lines.join('\n')).chunks(12, 250));
  const { sessionId } = await h.ok('claude_code', { prompt: 'tell a story' });
  const env = h.environment();
  // A terminal that does not know its width.
  const setup = { env, cwd: h.project, columns: 0 };
  const following = await PseudoTerminal.run(['follow', sessionId, '--until-rest'], setup);
  await following.shows('●\u001b[39m First \\u001b[2Jline.');
  expect(following.output).not.toContain('The end.');
  expect(await following.exited).toBe(0);
  for (const line of ['First \\u001b[2Jline.\r\n', 'in several pieces.\r\n', '  The end.\r\n'])
    expect(following.output.split(line)).toHaveLength(2);
  expect(following.output).not.toMatch(/\[\d+A/);
  const piped = await run(['follow', sessionId, '--until-rest']);
  expect(piped.stdout).toContain(`● First \\u001b[2Jline.\n  \n  ${lines[2]!}\n  The end.\n\n■ done`);
});

it('a script without a terminal reads; it starts and sends with a token', async () => {
  const h = shared();
  h.model.on('asked by a script').reply(text('done by script'));
  h.model.on('and again').reply(text('done again'));
  const refused = { code: 1, stdout: '', stderr: expect.stringContaining('interactive terminal') };
  expect(await run(['start', 'asked by a script'])).toEqual(refused);
  const created = await run(['token', 'create', 'script', '--role', 'caller', '--json']);
  const env = { CLAUDE_CODE_MCP_TOKEN: (JSON.parse(created.stdout) as { token: string }).token };
  const started = await run(['start', '--json', 'asked by a script'], env);
  expect(started).toMatchObject({ code: 0 });
  const { sessionId } = JSON.parse(started.stdout) as { sessionId: string };
  const followed = await run(['follow', sessionId, '--until-rest'], env);
  expect(followed).toMatchObject({ code: 0, stderr: '' });
  expect(followed.stdout).toMatch(/> asked by a script\n● done by script\n\n■ done/);
  expect(await run(['send', sessionId, 'and again'])).toEqual(refused);
  const sent = await run(['send', sessionId.slice(0, 8), '--follow', '--json', 'and again'], env);
  expect(sent).toMatchObject({ code: 0 });
  const events = sent.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { data: { kind: string } });
  expect(events.map(({ data }) => data.kind)).toEqual(expect.arrayContaining(['prompt', 'message', 'result']));

  h.model.on('and fail').always(httpError(400));
  const failed = await run(['send', sessionId, '--follow', 'and fail'], env);
  expect(failed).toMatchObject({ code: 1, stdout: expect.stringMatching(/■ failed \(1 turn, .* s\)\n {2}API Error/) });

  expect(await run(['show', 'ffff'], env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('begins with "ffff"'),
  });
  // What is wrong with the command itself is said first.
  for (const args of [['start'], ['send', sessionId, ' ']])
    expect(await run(args)).toMatchObject({ code: 2, stderr: expect.stringMatching(/needs a (prompt|text)/) });
  expect(await run(['sessions', '--al'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('did you mean --all'),
  });
  expect(await run(['sessions', '--url', 'https://hub.example.org'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('CLAUDE_CODE_MCP_TOKEN'),
  });
  const plain = await run(['sessions', '--url', 'http://hub.example.org'], env);
  expect(plain).toMatchObject({ code: 2, stderr: expect.stringContaining('https') });
});

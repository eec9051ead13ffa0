/** Requests answered from the command line: at a real terminal, by a script, and by those who may not. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openHub, type OpenHubOptions } from '../../../src/cli/client/hub-api.ts';
import { thisHost } from '../../../src/config/host.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { text, tool } from '../../../src/scripted-model/reply.ts';
import { builtServer } from '../../harness/built-server.ts';
import { eventually } from '../../harness/eventually.ts';
import { shareHarness } from '../../harness/harness.ts';
import { HAS_TERMINALS, PseudoTerminal } from '../../harness/pseudo-terminal.ts';
import { AttachedClient } from '../../hub/attached-client.ts';
import { runCommand, type CommandRun } from '../run-command.ts';

const shared = shareHarness({ hub: { env: { CLAUDE_CODE_MCP_APPROVALS: 'human' } } });

/** As a script or an agent outside any session runs it. */
function run(args: readonly string[], env: Record<string, string> = {}): Promise<CommandRun> {
  const h = shared();
  return runCommand(args, { env: h.environment(env), cwd: h.project });
}

function atTerminal(args: readonly string[], size: { columns?: number; rows?: number } = {}): Promise<PseudoTerminal> {
  const h = shared();
  return PseudoTerminal.run(args, { env: h.environment(), cwd: h.project, ...size });
}

/** This process, which has no terminal. */
function ownClient(): Omit<OpenHubOptions, 'isInteractive'> {
  const h = shared();
  const source = { ...thisHost(), argv: [], env: h.environment(), cwd: h.project, homedir: h.home };
  const settings = loadSettings(source);
  return {
    ...{ command: 'allow', settings, url: undefined },
    source: { ...source, inherited: {}, version: '1', stderr: () => undefined },
  };
}

interface Listed {
  readonly requestId: string;
  readonly sessionId: string;
  readonly toolName: string;
  readonly digest: string;
}

async function waiting(sessionId: string): Promise<Listed> {
  return eventually(
    async () => {
      const all = JSON.parse((await run(['inbox', '--json'])).stdout) as Listed[];
      return all.find((request) => request.sessionId === sessionId);
    },
    { what: 'the request is in the inbox' },
  );
}

async function tokenFor(role: string): Promise<Record<string, string>> {
  const { stdout } = await run(['token', 'create', `${role}-${Math.random()}`, '--role', role, '--json']);
  return { CLAUDE_CODE_MCP_TOKEN: (JSON.parse(stdout) as { token: string }).token };
}

const touch = (file: string): ReturnType<typeof tool> =>
  tool('Bash', { command: `touch ${file}`, description: 'make a file' });
const made = (file: string): boolean => existsSync(join(shared().project, file));

it.runIf(HAS_TERMINALS)('a person at a terminal answers one request after the other, each by one key', async () => {
  const h = shared();
  h.model
    .on('work through the inbox')
    .reply(
      touch('first'),
      touch('second'),
      tool('Write', { file_path: join(h.project, 'notes.txt'), content: 'one\ntwo\u202e\u001b[2J\n\n\n\n\n\nlast\n' }),
      text('all asked'),
    );
  const terminal = await atTerminal(['inbox', '--watch']);
  await terminal.shows('Nothing is waiting.');
  const { sessionId } = await h.ok('claude_code', { prompt: 'work through the inbox' });

  await terminal.shows(/Bash.*asked \d+ s ago/);
  await terminal.shows('touch first');
  await terminal.shows('a allow · A always · d deny');
  terminal.type('a');
  await terminal.shows(/Allowed.* by local/);

  await terminal.shows('touch second');
  await terminal.shows('d deny');
  terminal.type('dnot this one\r');
  await terminal.shows(/Denied.* by local.*not this one/);

  await terminal.shows('\u001b[32m+ one');
  // What could rewrite the screen, or the order of what is read, is spelled out.
  await terminal.shows('two\\u202e\\u001b[2J');
  await terminal.shows(/\+ 5 blank lines/);
  await terminal.shows('+ last');
  await terminal.shows('a allow');
  terminal.type('a');
  await terminal.shows('Nothing is waiting.');
  terminal.type('\u0003');
  expect(await terminal.exited).toBe(130);

  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'all asked' } });
  expect(made('second')).toBe(false);
  expect(readFileSync(join(h.project, 'notes.txt'), 'utf8')).toContain('last');
  const audit = readFileSync(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'), 'utf8');
  expect(audit).toMatch(/"kind":"decision".*"who":"human".*"principal":"local"|"principal":"local".*"who":"human"/);
});

it.runIf(HAS_TERMINALS)('a rule made in the inbox answers from then on', async () => {
  const h = shared();
  const make = tool('Bash', { command: 'make rule-in-terminal', description: 'x' });
  h.model.on('make it twice').reply(make, make, text('made twice'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'make it twice' });
  await waiting(sessionId);
  const terminal = await atTerminal(['inbox']);
  await terminal.shows('r always in this repository');
  terminal.type('r');
  await terminal.shows('Enter, or another match');
  terminal.type('\r');
  await terminal.shows("project's own code");
  await terminal.shows('y make it');
  // The second key does not answer the request that the rule was made for.
  terminal.type('yy');
  await terminal.shows('still to be answered');
  await terminal.shows('d deny');
  terminal.type('dnot this time\r');
  await terminal.shows(/Denied.* by local.*not this time/);
  // The second call was answered by the rule.
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'made twice' } });
  terminal.type('\u0003');
  await terminal.exited;
  const [rule] = JSON.parse((await run(['rules', 'list', '--json'])).stdout);
  expect(rule).toMatchObject({ match: 'make rule-in-terminal', directory: h.project, createdBy: 'local' });
});

it.runIf(HAS_TERMINALS)('allow asks first, and nothing is allowed that was not on the screen', async () => {
  const h = shared();
  const long = Array.from({ length: 60 }, (_, line) => `echo ${line}`).join('\n');
  h.model.on('a long command').reply(tool('Bash', { command: `${long}\ntouch long`, description: 'x' }), text('done'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'a long command' });
  const { requestId } = await waiting(sessionId);

  const refusing = await atTerminal(['allow', requestId.slice(0, 10)]);
  await refusing.shows('more lines: space');
  // The decision is not taken before the end was shown.
  refusing.type('y');
  await refusing.shows('touch long');
  await refusing.shows('y allow · n no');
  refusing.type('n');
  await refusing.shows('still waiting');
  expect(await refusing.exited).toBe(1);
  expect(made('long')).toBe(false);

  const allowing = await atTerminal(['allow', requestId.slice(0, 10)], { rows: 500 });
  await allowing.shows('y allow · n no');
  allowing.type('y');
  await allowing.shows('Allowed');
  expect(await allowing.exited).toBe(0);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
  expect(made('long')).toBe(true);
  const again = await run(['deny', requestId], await tokenFor('approver'));
  expect(again).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/Already settled: Allowed by local/),
  });
});

it.runIf(HAS_TERMINALS)(
  'a line that is longer than the screen is shown whole, and none of its rows is without a bar',
  async () => {
    const h = shared();
    const command = `make ${Array.from({ length: 400 }, (_, word) => `${String(word).padStart(3, '0')}-word`).join(' ')}`;
    h.model.on('a long line').reply(tool('Bash', { command, description: 'x' }), text('done'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'a long line' });
    const { requestId } = await waiting(sessionId);
    const terminal = await atTerminal(['allow', requestId], { columns: 60, rows: 12 });
    for (let pages = 0; ; pages++) {
      const [shown] = await terminal.shows(/more lines?: space|y allow · n no/);
      if (shown.startsWith('y')) {
        expect(pages).toBeGreaterThan(4);
        break;
      }
      terminal.type(' ');
    }
    terminal.type('y');
    await terminal.exited;
    await h.waitUntilRest(sessionId);
    // eslint-disable-next-line no-control-regex
    const rows = terminal.output.replaceAll(/\u001b\[[\d;]*[mK]|── .* ──/g, '').split(/[\r\n]+/);
    const part = rows.slice(rows.indexOf('command:') + 1, rows.indexOf('description: x')).filter((row) => row !== '');
    expect(part.length).toBeGreaterThan(60);
    for (const row of part) expect(row).toMatch(/^│ .{1,58}$/);
    expect(part.map((row) => row.slice(2)).join('')).toBe(command);
  },
);

it.runIf(HAS_TERMINALS)('a key pressed before a request was shown does not answer it', async () => {
  const h = shared();
  h.model.on('two hasty').reply(touch('hasty-one'), touch('hasty-two'), text('both asked'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'two hasty' });
  await waiting(sessionId);
  const terminal = await atTerminal(['inbox', '--watch']);
  await terminal.shows('touch hasty-one');
  await terminal.shows('a allow');
  terminal.type('aa');
  await terminal.shows('touch hasty-two');
  await terminal.shows('a allow');
  terminal.type('d\r');
  // Nobody wrote anything, so nothing is quoted.
  await terminal.shows(/Denied.* by local \([^)]*\)\r\n/);
  terminal.type('\u0003');
  await terminal.exited;
  await h.waitUntilRest(sessionId);
  expect([made('hasty-one'), made('hasty-two')]).toEqual([true, false]);
});

/** Returns when the terminal has these keys: it echoes what nobody reads. */
async function typeAhead(terminal: PseudoTerminal, keys: string): Promise<void> {
  terminal.type(`${keys}~`);
  await terminal.shows('~');
}

it.runIf(HAS_TERMINALS)('a key pressed while nothing was waiting does not answer the first request', async () => {
  const h = shared();
  h.model.on('ask the idle inbox').reply(touch('unseen'), text('asked'));
  const terminal = await atTerminal(['inbox', '--watch']);
  await terminal.shows('Nothing is waiting.');
  await typeAhead(terminal, 'ay');
  const { sessionId } = await h.ok('claude_code', { prompt: 'ask the idle inbox' });
  await terminal.shows('touch unseen');
  await terminal.shows('a allow');
  terminal.type('d');
  await terminal.shows('What to do instead');
  terminal.type('\r');
  await terminal.shows(/Denied.* by local/);
  terminal.type('\u0003');
  await terminal.exited;
  await h.waitUntilRest(sessionId);
  expect(made('unseen')).toBe(false);
});

it.runIf(HAS_TERMINALS)('an input that ended before a request is shown leaves it waiting', async () => {
  const h = shared();
  h.model.on('ask nobody').reply(touch('unasked'), text('asked'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'ask nobody' });
  const { requestId } = await waiting(sessionId);
  process.kill(h.hub.pid, 'SIGSTOP');
  const terminal = await atTerminal(['allow', requestId]).finally(() => process.kill(h.hub.pid, 'SIGCONT'));
  terminal.end();
  await terminal.exited;
  expect((await waiting(sessionId)).requestId).toBe(requestId);
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
  expect(made('unasked')).toBe(false);
});

it.runIf(HAS_TERMINALS)('a key pressed before allow has shown its request does not answer it', async () => {
  const h = shared();
  const options = ['red', 'blue'].map((label) => ({ label, description: label }));
  const questions = [{ question: 'Which colour?', header: 'Colour', multiSelect: false, options }];
  h.model.on('hasty permission').reply(touch('too-early'), text('not reached'));
  h.model.on('hasty question').reply(tool('AskUserQuestion', { questions }), text('answered'));
  /** The hub does not answer before the keys are typed. */
  const typedBefore = async (sessionId: string, keys: string): Promise<PseudoTerminal> => {
    const { requestId } = await waiting(sessionId);
    process.kill(h.hub.pid, 'SIGSTOP');
    try {
      const terminal = await atTerminal(['allow', requestId]);
      await typeAhead(terminal, keys);
      return terminal;
    } finally {
      process.kill(h.hub.pid, 'SIGCONT');
    }
  };

  const asking = await h.ok('claude_code', { prompt: 'hasty permission' });
  const permission = await typedBefore(asking.sessionId, 'y');
  await permission.shows('y allow · n no');
  permission.type('n');
  await permission.shows('still waiting');
  expect(await permission.exited).toBe(1);
  await h.ok('claude_code_session', { action: 'cancel', sessionId: asking.sessionId });
  expect(made('too-early')).toBe(false);

  const { sessionId } = await h.ok('claude_code', { prompt: 'hasty question' });
  const question = await typedBefore(sessionId, '1\r');
  await question.shows('your own words');
  question.type('2\r');
  await question.shows(/Allowed.* by local/);
  await h.waitUntilRest(sessionId);
  const answers = h.model.requests.flatMap(({ toolResults }) => toolResults.map((result) => result.text));
  expect(answers).toContainEqual(expect.stringContaining('"Which colour?"="blue"'));
});

it.runIf(HAS_TERMINALS)(
  'an answer given while the hub is killed reaches the next one, and is carried out once',
  async () => {
    const h = shared();
    const command = 'echo once >> answered-once';
    h.model.on('ask before the hub dies').reply(tool('Bash', { command, description: 'x' }), text('after all'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'ask before the hub dies' });
    const { requestId } = await waiting(sessionId);
    const terminal = await atTerminal(['allow', requestId]);
    await terminal.shows('y allow · n no');
    await h.stopHub('SIGKILL');
    terminal.type('y');
    await h.startHub();
    await terminal.shows(/Allowed.* by local/);
    expect(await terminal.exited).toBe(0);
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'after all' } });
    expect(readFileSync(join(h.project, 'answered-once'), 'utf8')).toBe('once\n');
  },
);

it('without a terminal nothing is watched, and it says so', async () => {
  for (const args of [['--watch'], ['--watch', '--json']]) {
    const { code, stdout, stderr } = await run(['inbox', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('interactive terminal');
  }
});

it('a question is listed with what comes with its options', async () => {
  const h = shared();
  const options = [
    { label: 'wide', description: 'One row', preview: '| nav | main |\n+-----+------+' },
    { label: 'tall', description: 'Two rows' },
  ];
  const questions = [{ question: 'Which layout?', header: 'Layout', multiSelect: false, options }];
  h.model.on('pick a layout').reply(tool('AskUserQuestion', { questions }), text('done'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'pick a layout' });
  await waiting(sessionId);
  const { stdout } = await run(['inbox']);
  expect(stdout).toMatch(/1\. wide {2}One row\npreview:\n│ \| nav \| main \|\n│ \+-----\+------\+\n {2}2\. tall/);
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
});

it('without a terminal it takes a token, and the digest of what is allowed', async () => {
  const h = shared();
  h.model.on('unattended').reply(touch('unattended'), text('done'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'unattended' });
  const { requestId, digest } = await waiting(sessionId);

  const listed = await run(['inbox']);
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(listed.stdout).toContain('│ touch unattended');
  expect(listed.stdout).not.toContain('\u001b');

  // A calling agent may read, and nothing else.
  const refused = { code: 1, stdout: '', stderr: expect.stringContaining('interactive terminal') };
  expect(await run(['allow', requestId])).toEqual(refused);
  expect(await run(['allow', requestId, '--digest', digest])).toEqual(refused);
  expect(await run(['deny', requestId, '-m', 'no'])).toEqual(refused);
  // The hub looks for itself whether there is a terminal.
  const { api } = openHub({ ...ownClient(), isInteractive: true });
  await expect(api.post(`/api/v1/requests/${requestId}/answer`, { decision: 'allow' })).rejects.toMatchObject({
    status: 403,
  });
  const viewer = await run(['allow', requestId, '--digest', digest], await tokenFor('viewer'));
  expect(viewer).toMatchObject({ code: 1, stderr: expect.stringContaining('role') });

  const rule = ['rules', 'add', 'allow', 'Bash(make with-token)', '--directory', h.project];
  expect(await run(rule)).toMatchObject({ code: 1, stderr: expect.stringContaining('interactive terminal') });
  for (const role of ['viewer', 'caller'])
    expect(await run(rule, await tokenFor(role))).toMatchObject({ code: 1, stderr: expect.stringContaining('role') });

  const approver = await tokenFor('approver');
  const everywhere = ['rules', 'add', 'allow', 'Bash(make with-token)', '--everywhere'];
  expect(await run(everywhere, approver)).toMatchObject({ code: 1, stderr: expect.stringContaining('admin') });
  const ruled = await run([...rule, '--expires', '1d'], await tokenFor('admin'));
  expect(ruled).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining("project's own code") });
  const id = ruled.stdout.trim().split('\n').at(-1)!;
  const standing = JSON.parse((await run(['rules', 'list', '--json'], approver)).stdout) as object[];
  expect(standing).toContainEqual(expect.objectContaining({ id, createdBy: expect.stringMatching(/^token:/) }));
  expect(await run(['rules', 'remove', id], await tokenFor('viewer'))).toMatchObject({ code: 1 });
  expect(await run(['rules', 'remove', id], await tokenFor('admin'))).toMatchObject({ code: 0, stderr: '' });

  expect(await run(['allow', requestId], approver)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--digest'),
  });
  const other = await run(['allow', requestId, '--digest', digest.replace(/./g, '0')], approver);
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was allowed') });
  expect(made('unattended')).toBe(false);
  const allowed = await run(['allow', requestId.slice(0, 10), '--digest', digest, '--json'], approver);
  expect(allowed).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(allowed.stdout)).toMatchObject({ requestId, outcome: { decision: 'allow', source: 'human' } });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
  expect(made('unattended')).toBe(true);
});

it.runIf(HAS_TERMINALS)(
  'a session cannot answer or make rules, not even with a terminal of its own, and has no token',
  async () => {
    const h = shared();
    h.model.on('asks for a file').reply(touch('forbidden'), text('done'));
    const { sessionId: other } = await h.ok('claude_code', { prompt: 'asks for a file' });
    const { requestId } = await waiting(other);
    const command = `${process.execPath} ${builtServer()}`;
    const tried = [
      `${command} inbox`,
      `${command} allow ${requestId}`,
      `echo y | script -qec '${command} allow ${requestId}' /dev/null`,
      `echo y | env -u CLAUDE_CODE_MCP_DEPTH -u CLAUDE_CODE_MCP_PARENT script -qec '${command} allow ${requestId}' /dev/null`,
      `echo y | script -qec "${command} rules add allow 'Bash(make evil)' --everywhere" /dev/null`,
      `echo y | env -u CLAUDE_CODE_MCP_DEPTH -u CLAUDE_CODE_MCP_PARENT script -qec "${command} rules import reading" /dev/null`,
      'echo "token: $CLAUDE_CODE_MCP_TOKEN"',
    ];
    const rules = async (): Promise<string> => (await run(['rules', 'list', '--json'])).stdout;
    const before = await rules();
    const script = h.model.on('try to answer').reply(
      tool('Bash', {
        // At the same time: `script` takes two seconds to end.
        command: `${tried.map((one) => `(${one}) &`).join(' ')} wait`,
        description: 'try',
      }),
      text('tried'),
    );
    const person = await atTerminal(['inbox', '--watch']);
    await person.shows('touch forbidden');
    await person.shows('s skip');
    person.type('s');
    const careless = await AttachedClient.open(h, { env: { CLAUDE_CODE_MCP_TOKEN: 'ccmcp_secret' } });
    const { sessionId } = await careless.ok('claude_code', { prompt: 'try to answer' });
    await person.shows('echo "token:');
    await person.shows('a allow');
    person.type('a');
    await careless.waitUntilRest(sessionId);
    const [output] = h.model.requestsFor(script).flatMap(({ toolResults }) => toolResults.map((result) => result.text));
    expect(output?.match(/inside a session/g)).toHaveLength(6);
    expect(await rules()).toBe(before);
    expect(output).toMatch(/^token: ?$/m);
    expect(made('forbidden')).toBe(false);
    expect(await waiting(other)).toMatchObject({ requestId });
    await h.ok('claude_code_session', { action: 'cancel', sessionId: other });
  },
);

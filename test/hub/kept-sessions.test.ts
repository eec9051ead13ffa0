/** Sessions go on while their hub is gone, with the real Claude Code and the real keeper. */

import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { FrameReader, keeperFiles, messageFrame, proofOf, type FromKeeper } from '../../src/keeper/protocol.ts';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { runCommandIn, type Ended } from '../harness/run-command.ts';
import { eventually } from '../harness/eventually.ts';

const HUB = { git: true, hub: {} };

it('a killed hub stops nothing: work, a request and a session at rest go on under the next one', async () => {
  const h = await startHarness({ ...HUB, settings: { permissions: { allow: ['Write'] } } });
  const held = gate(text('the work is done'));
  h.model.on('work').reply(tool('Write', { file_path: join(h.project, 'a.txt'), content: 'a\n' }), held);
  h.model.on('ask').reply(tool('Bash', { command: 'echo asked > asked.txt' }), text('asked and done'));
  h.model.on('rest').reply(text('resting'));
  h.model.on('again').reply(text('still the same process'));

  const working = await h.ok('claude_code', { prompt: 'work' });
  const resting = await h.ok('claude_code', { prompt: 'rest', waitMs: 45_000 });
  const asking = await h.ok('claude_code', { prompt: 'ask', waitMs: 45_000 });
  expect(asking.actions).toHaveLength(1);
  await held.arrived;
  const before = await claudes(h);

  await h.stopHub('SIGKILL');
  held.release();
  await h.startHub();

  const done = await h.ok('claude_code_check', { action: 'wait', sessionId: working.sessionId, waitMs: 45_000 });
  expect(done).toMatchObject({ status: 'idle', result: { result: 'the work is done', isError: false } });
  const [action] = asking.actions as Json[];
  const waiting = await h.ok('claude_code_check', { action: 'poll', sessionId: asking.sessionId });
  expect(waiting).toMatchObject({ status: 'waiting_permission', actions: [{ requestId: action.requestId }] });
  const answered = await h.ok('claude_code_check', {
    action: 'respond_permission',
    sessionId: asking.sessionId,
    requestId: action.requestId,
    decision: 'allow',
    waitMs: 45_000,
  });
  expect(answered).toMatchObject({ status: 'idle', result: { result: 'asked and done' } });
  expect(readFileSync(join(h.project, 'asked.txt'), 'utf8')).toBe('asked\n');
  expect(existsSync(join(h.project, 'a.txt'))).toBe(true);
  const again = await h.ok('claude_code_reply', { sessionId: resting.sessionId, prompt: 'again', waitMs: 45_000 });
  expect(again.result.result).toBe('still the same process');
  expect(await claudes(h)).toEqual(before);
});

const command = (h: Harness, name: string): Promise<Ended> =>
  runCommandIn({ project: h.project, env: () => h.environment() }, { args: ['hub', name] });

const claudes = async (h: Harness): Promise<number[]> =>
  (await h.processes())
    .filter(({ command }) => command.includes('--session-id') || command.includes('--resume'))
    .map(({ pid }) => pid)
    .sort();

it('a wait goes on over a restart of the hub, and what only the process knows is still there', async () => {
  const h = await startHarness({ ...HUB, env: { SECRET_TOKEN: 'brought by this client' } });
  const held = gate(text('finished after the restart'));
  h.model.on('work').reply(held);
  h.model.on('env').reply(tool('Bash', { command: 'echo "$SECRET_TOKEN"' }), text('seen'));
  const started = h.ok('claude_code', { prompt: 'work', waitMs: 60_000 });
  await held.arrived;
  const { sessions } = await h.ok('claude_code_session', { action: 'list' });
  const [{ sessionId }] = sessions;
  const before = await claudes(h);
  const progress: number[] = [];
  const waited = h.ok(
    'claude_code_check',
    { action: 'wait', sessionId, waitMs: 60_000 },
    { onProgress: ({ progress: told }) => progress.push(told) },
  );
  await eventually(() => progress.length > 0, { what: 'the wait has begun' });
  const { pid } = h.hub;
  expect((await command(h, 'status')).stdout).toContain(`pid ${String(h.keeperPid)}: sessions go on without the hub`);
  expect(await command(h, 'restart')).toMatchObject({ code: 0 });
  expect(readHubRecord(join(h.stateDir, 'claude-code-mcp'))?.pid).not.toBe(pid);
  held.release();
  expect((await waited).result.result).toBe('finished after the restart');
  expect(await started).toMatchObject({ sessionId, result: { result: 'finished after the restart' } });
  expect(progress).toEqual([...progress].sort((a, b) => a - b));
  expect(await claudes(h)).toEqual(before);
  await command(h, 'stop');
  await eventually(async () => (await claudes(h)).length === 0 && h.keeperPid === undefined, {
    what: 'everything has ended',
  });
});

it('under narrower rules a process is ended, and its request stays; without a hub for too long, too', async () => {
  const h = await startHarness({ ...HUB, hub: { args: ['--keep-for', '1s'] } });
  h.model.on('ask').reply(tool('Bash', { command: 'touch asked.txt' }), text('done'));
  const { sessionId, actions } = await h.ok('claude_code', { prompt: 'ask', waitMs: 45_000 });
  const requests = h.model.requests.length;
  await h.stopHub('SIGKILL');
  await eventually(async () => (await claudes(h)).length === 0 && h.keeperPid === undefined, {
    what: 'the keeper gave up',
  });
  await h.startHub({ args: ['--keep-for', '10m'] });
  expect(h.hub.stderr()).toContain('no hub came back');
  const kept = await h.ok('claude_code_check', { action: 'poll', sessionId });
  expect(kept).toMatchObject({ status: 'waiting_permission', actions: [{ requestId: actions[0].requestId }] });

  h.model.on('second').reply(tool('Bash', { command: 'touch second.txt' }), text('done'));
  const second = await h.ok('claude_code', { prompt: 'second', waitMs: 45_000 });
  expect(await claudes(h)).toHaveLength(1);
  await h.stopHub('SIGKILL');
  await h.startHub({ args: ['--approvals', 'human'] });
  expect(h.hub.stderr()).toContain('started under wider rules');
  expect(await claudes(h)).toEqual([]);
  const after = await h.ok('claude_code_check', { action: 'poll', sessionId: second.sessionId });
  expect(after).toMatchObject({ status: 'waiting_permission', actions: [{ requestId: second.actions[0].requestId }] });
  expect(h.model.requests.length).toBe(requests + 1);
});

it('a keeper that is killed takes Claude Code along without asking the model again, and the hub goes on', async () => {
  const h = await startHarness(HUB);
  h.model.on('ask').reply(tool('Bash', { command: 'touch asked.txt' }), text('done'));
  h.model.on('next').reply(text('with a new keeper'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'ask', waitMs: 45_000 });
  const requests = h.model.requests.length;
  const keeper = h.keeperPid;
  process.kill(Number(keeper), 'SIGKILL');
  await eventually(async () => (await claudes(h)).length === 0, { what: 'Claude Code is gone' });
  await eventually(() => h.hub.stderr().includes('the keeper of the processes is gone'), { what: 'the hub says so' });
  expect(await h.ok('claude_code_check', { action: 'poll', sessionId })).toMatchObject({
    status: 'waiting_permission',
  });
  const next = await h.ok('claude_code', { prompt: 'next', waitMs: 45_000 });
  expect(next.result.result).toBe('with a new keeper');
  expect(h.keeperPid).not.toBe(keeper);
  expect(h.model.requests.length).toBe(requests + 1);
});

it('the keeper speaks to nobody but the hub, whoever knows its secret', async () => {
  const h = await startHarness(HUB);
  h.model.on('rest').reply(text('resting'));
  await h.ok('claude_code', { prompt: 'rest', waitMs: 45_000 });
  const before = await claudes(h);
  const files = keeperFiles(join(h.stateDir, 'claude-code-mcp'));
  const { socket: file } = JSON.parse(readFileSync(files.record, 'utf8')) as { socket: string };
  const secret = readFileSync(files.secret, 'utf8').trim();
  expect([statSync(files.secret).mode & 0o077, statSync(files.record).mode & 0o077]).toEqual([0, 0]);

  const tryWith = async (given: string, holds: boolean): Promise<string> => {
    const socket = connect(file);
    const claims: number[] = [];
    try {
      return await new Promise<string>((resolve, reject) => {
        const reader = new FrameReader<FromKeeper>((frame) => {
          if (frame.kind !== 'message') return;
          const { message } = frame;
          if (message.t === 'refused') resolve(message.why);
          else if (message.t === 'welcome') resolve('welcome');
          else if (message.t === 'hello') {
            if (holds) claims.push(openSync(files.claim(message.nonce), 'wx', 0o600));
            socket.write(messageFrame({ t: 'prove', pid: process.pid, proof: proofOf(given, message.nonce) }));
          }
        });
        socket.on('data', (chunk: Buffer) => reader.take(chunk)).on('error', reject);
      });
    } finally {
      for (const claim of claims) closeSync(claim);
      socket.destroy();
    }
  };
  expect(await tryWith('0'.repeat(64), true)).toBe('it does not know the secret');
  if (process.platform === 'linux') {
    expect(await tryWith(secret, false)).toBe('it is not the process that it says it is');
    expect(await tryWith(secret, true)).toBe('it does not hold the lock of the hub');
    const forged = join(files.directory, 'instance.0.lock');
    writeFileSync(forged, JSON.stringify({ pid: process.pid }));
    expect(await tryWith(secret, true)).toBe('another hub is connected');
    rmSync(forged);
  }
  expect(await claudes(h)).toEqual(before);
});

it('a hub that cannot give its sessions a unit of their own says that they end with it', async () => {
  const h = await startHarness({ hub: { env: { CLAUDE_CODE_MCP_SERVICE: '1', PATH: dirname(process.execPath) } } });
  expect(h.hub.stderr()).toContain('sessions will end with this hub: systemd-run');
  expect((await command(h, 'status')).stdout).toContain('sessions end with the hub: the service manager ends');
});

/** Knows where everything is, says that it is the hub, and prints what the keeper answers. */
const ATTACKER = `
const { createHmac } = require('node:crypto');
const { openSync, readFileSync, writeFileSync } = require('node:fs');
const directory = process.argv[2];
const { socket: file } = JSON.parse(readFileSync(directory + '/keeper-1.json', 'utf8'));
const secret = readFileSync(directory + '/keeper-1-secret', 'utf8').trim();
writeFileSync(directory + '/instance.0.lock', JSON.stringify({ pid: process.pid }));
const socket = require('node:net').connect(file);
socket.on('data', (bytes) => {
  const message = JSON.parse(bytes.subarray(5, 4 + bytes.readUInt32BE(0)).toString());
  if (message.t !== 'hello') { writeFileSync(process.argv[3], message.why ?? message.t); process.exit(); }
  openSync(directory + '/keeper-claim-' + message.nonce, 'wx');
  const proof = createHmac('sha256', secret).update('hub ' + message.nonce).digest('hex');
  const body = Buffer.from(JSON.stringify({ t: 'prove', pid: process.pid, proof }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length + 1);
  socket.write(Buffer.concat([head, body]));
});`;

it.runIf(process.platform === 'linux')(
  "a session's shell gets nowhere with the keeper, not even from a process that has left the session",
  async () => {
    const h = await startHarness({ ...HUB, settings: { permissions: { allow: ['Bash'] } } });
    const program = join(h.home, 'attacker.cjs');
    writeFileSync(program, ATTACKER);
    const directory = join(h.stateDir, 'claude-code-mcp', 'hub');
    const attack = (answer: string): string => `${process.execPath} ${program} ${directory} ${join(h.home, answer)}`;
    const outside = `(setsid env -i ${attack('outside')} </dev/null >/dev/null 2>&1 &)`;
    h.model
      .on('attack')
      .reply(
        tool('Bash', { command: attack('inside'), description: 'attack' }),
        tool('Bash', { command: outside, description: 'attack from outside' }),
        text('done'),
      );
    await h.ok('claude_code', { prompt: 'attack', waitMs: 45_000 });
    const answer = (name: string): string => readFileSync(join(h.home, name), 'utf8');
    await eventually(() => existsSync(join(h.home, 'outside')) && answer('outside') !== '', {
      what: 'the keeper has answered',
    });
    expect([answer('inside'), answer('outside')]).toEqual(['another hub is connected', 'another hub is connected']);
    rmSync(join(directory, 'instance.0.lock'));
    expect(await command(h, 'status')).toMatchObject({ code: 0 });
  },
);

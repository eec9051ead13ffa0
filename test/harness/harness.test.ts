import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERAS } from './connect-client.ts';
import { startHarness } from './harness.ts';
import { openHarness, type Harness, type HarnessOptions } from './open-harness.ts';

const program = fileURLToPath(new URL('fixtures/stand-in-server.mjs', import.meta.url));

const start = (options: HarnessOptions = {}): Promise<Harness> => startHarness({ program, ...options });
/** Cleaned up by the test itself, which looks at how that ends. */
const open = (options: HarnessOptions = {}): Promise<Harness> => openHarness({ program, ...options });

describe.each(ERAS)('with a %s client', (era) => {
  it('connects in that era', async () => {
    const h = await start({ era });
    expect(await h.ok('era', {})).toEqual({ era });
    expect(h.client.getNegotiatedProtocolVersion()).toBe(era === 'legacy' ? '2025-11-25' : '2026-07-28');
  });

  it('answers forms as the test says', async () => {
    const h = await start({ era, form: () => ({ action: 'accept', content: { decision: 'allow' } }) });
    expect(await h.ok('ask', {})).toEqual({ decision: 'allow' });
    expect(h.forms).toMatchObject([{ message: 'May I?' }]);
  });

  it('passes progress on', async () => {
    const h = await start({ era });
    const messages: unknown[] = [];
    await h.ok('progress', {}, { onProgress: ({ message }) => messages.push(message) });
    expect(messages).toEqual(['on it']);
  });

  it('starts the server again in the same home', async () => {
    const h = await start({ era });
    const first = h.server.pid;
    await h.restartServer({ env: { SECOND: 'yes' } });
    expect(h.server.pid).not.toBe(first);
    expect(await h.ok('environment', {})).toMatchObject({ HOME: h.home, SECOND: 'yes' });
  });
});

it('starts the server again after it was killed', async () => {
  const h = await start();
  h.server.kill('SIGKILL');
  expect(await h.server.exited).toEqual({ code: null, signal: 'SIGKILL' });
  await expect(h.ok('echo', {})).rejects.toThrow();
  await h.restartServer();
  expect(await h.ok('echo', { again: true })).toEqual({ again: true });
});

describe('the world of the server', () => {
  it('has nothing of the environment of the tests but the path', async () => {
    process.env['LEAKED_BY_THE_TESTS'] = 'yes';
    const h = await start({ env: { GIVEN: 'yes' } });
    const environment = await h.ok('environment', {});
    expect(Object.keys(environment).sort()).toEqual(
      [
        'PATH',
        'HOME',
        'TMPDIR',
        'XDG_STATE_HOME',
        'CLAUDE_CONFIG_DIR',
        'CLAUDE_CODE_MCP_TEST',
        'CLAUDE_CODE_MCP_START_TIMEOUT_MS',
        'BUN_JSC_useDFGJIT',
        'GIVEN',
      ]
        .concat(Object.keys(h.model.env()))
        .sort(),
    );
  });

  it('has a repository and settings when asked for', async () => {
    const h = await start({ git: true, settings: { model: 'opus' } });
    expect(existsSync(`${h.project}/.git`)).toBe(true);
    expect(existsSync(`${h.configDir}/settings.json`)).toBe(true);
  });

  it('is removed afterwards', async () => {
    const h = await open();
    await h.close();
    expect(existsSync(h.home)).toBe(false);
    expect(await h.processes()).toEqual([]);
    expect(await h.server.exited).toEqual({ code: 0, signal: null });
  });
});

describe('calls', () => {
  it('returns the answer, the message of an error, or fails', async () => {
    const h = await start();
    expect(await h.ok('echo', { a: 1 })).toEqual({ a: 1 });
    expect(await h.fails('fail', { code: 'TIMEOUT' }, 'TIMEOUT')).toBe('it went wrong');
    await expect(h.ok('fail', { code: 'TIMEOUT' })).rejects.toThrow('fail failed: {"error":"Error [TIMEOUT]');
    await expect(h.fails('fail', { code: 'TIMEOUT' }, 'CANCELLED')).rejects.toThrow('"Error [CANCELLED]: …", but said');
    await expect(h.fails('echo', { a: 1 }, 'CANCELLED')).rejects.toThrow('but answered: {"a":1}');
  });

  it('rejects an answer whose text and structured content differ', async () => {
    const h = await start();
    await expect(h.call('contradict', {})).rejects.toThrow('two different things');
  });

  it('waits for a request, decides it and waits for rest', async () => {
    const h = await start();
    expect(await h.waitForRequest('s1')).toMatchObject({ requestId: 'r1' });
    await expect(h.waitUntilRest('s1', { within: 50 })).rejects.toThrow('Not within 50 ms: the session is at rest');
    await h.deny('s1', { message: 'no' });
    expect(await h.waitUntilRest('s1')).toMatchObject({ status: 'idle', decision: 'deny' });
  });
});

describe('clean-up', () => {
  it('fails when a process is left, and kills it', async () => {
    const h = await open({ graceMs: 1_000 });
    const { pid } = await h.ok('leave_process', {});
    expect((await h.processes()).map((found) => found.pid).sort()).toEqual(expect.arrayContaining([h.server.pid, pid]));
    await expect(h.close()).rejects.toThrow(new RegExp(`Still alive 1000 ms after[^]*\\n  ${pid} sh -c while`));
    expect(await h.processes()).toEqual([]);
  });

  it.each(['hello\n', '\n', 'no end of line'])('fails when the server prints %j on stdout', async (text) => {
    const h = await open();
    await h.call('print', { text }, { timeout: 300 }).catch(() => undefined);
    await expect(h.close()).rejects.toThrow('stdout belongs to the protocol');
  });

  it('fails when stderr tells of an unhandled rejection, unless tolerated', async () => {
    const strict = await open();
    await strict.ok('reject_unhandled', {});
    await expect(strict.close()).rejects.toThrow('nobody cares');

    const lenient = await open({ tolerate: { stderr: true } });
    await lenient.ok('reject_unhandled', {});
    await lenient.close();
  });

  it('fails when the model was asked what no script expects, unless tolerated', async () => {
    const ask = (h: Harness): Promise<unknown> =>
      fetch(`${h.model.url}/v1/messages`, { method: 'POST', body: '{"messages":[]}' });
    const strict = await open();
    await ask(strict);
    await expect(strict.close()).rejects.toThrow('what no script expects');

    const lenient = await open({ tolerate: { unexpectedRequests: true } });
    await ask(lenient);
    await lenient.close();
  });
});

describe('a server that does not start', () => {
  it('is told with its stderr', async () => {
    await expect(open({ args: ['--refuse-to-start'] })).rejects.toThrow('bad value of --refuse-to-start');
  });

  it('can be looked at', async () => {
    const h = await start({ args: ['--refuse-to-start'], connect: false });
    expect(await h.server.exited).toEqual({ code: 2, signal: null });
    expect(h.server.stderr()).toBe('bad value of --refuse-to-start\n');
  });
});

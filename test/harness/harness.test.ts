import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ERAS } from './connect-client.ts';
import { shareHarness, startHarness } from './harness.ts';
import { SHORT_LIFE } from './isolated-home.ts';
import { openHarness, type Harness, type HarnessOptions } from './open-harness.ts';

const program = fileURLToPath(new URL('fixtures/stand-in-server.mjs', import.meta.url));

/** Closed by the test itself, which checks what `close` reports. */
const open = (options: HarnessOptions = {}): Promise<Harness> => openHarness({ program, ...options });

describe.each(ERAS)('with a %s client', (era) => {
  const harness = shareHarness({
    program,
    era,
    form: () => ({ action: 'accept', content: { decision: 'allow' } }),
  });

  it('connects in that era', async () => {
    const h = harness();
    expect(await h.ok('era', {})).toEqual({ era });
    expect(h.client.getNegotiatedProtocolVersion()).toBe(era === 'legacy' ? '2025-11-25' : '2026-07-28');
  });

  it('answers forms as the test specifies', async () => {
    const h = harness();
    expect(await h.ok('ask', {})).toEqual({ decision: 'allow' });
    expect(h.forms).toMatchObject([{ message: 'May I?' }]);
  });

  it('passes on progress', async () => {
    const messages: unknown[] = [];
    await harness().ok('progress', {}, { onProgress: ({ message }) => messages.push(message) });
    expect(messages).toEqual(['on it']);
  });

  it('restarts the server in the same home', async () => {
    const h = harness();
    const first = h.server.pid;
    await h.restartServer({ env: { SECOND: 'yes' } });
    expect(h.server.pid).not.toBe(first);
    expect(await h.ok('environment', {})).toMatchObject({ HOME: h.home, SECOND: 'yes' });
  });
});

describe('the server’s environment', () => {
  beforeAll(() => {
    vi.stubEnv('LEAKED_BY_THE_TESTS', 'yes');
    return () => void vi.unstubAllEnvs();
  });
  const harness = shareHarness({ program, env: { GIVEN: 'yes' }, git: true, settings: { model: 'opus' } });

  it('inherits only the PATH from the test process', async () => {
    const h = harness();
    const environment = await h.ok('environment', {});
    expect(Object.keys(environment).sort()).toEqual(
      [
        'PATH',
        'HOME',
        'TMPDIR',
        'XDG_STATE_HOME',
        'CLAUDE_CONFIG_DIR',
        'CCM_TEST',
        'CLAUDE_CODE_MCP_START_TIMEOUT_MS',
        'GIVEN',
      ]
        .concat(Object.keys(SHORT_LIFE), Object.keys(h.model.env()))
        .sort(),
    );
  });

  it('has a repository and settings when asked for', () => {
    const h = harness();
    expect(existsSync(`${h.project}/.git`)).toBe(true);
    expect(existsSync(`${h.configDir}/settings.json`)).toBe(true);
  });

  it('outlives a killed server, so that another can be started in it', async () => {
    const h = harness();
    h.server.kill('SIGKILL');
    expect(await h.server.exited).toEqual({ code: null, signal: 'SIGKILL' });
    await expect(h.ok('echo', {})).rejects.toThrow();
    await h.restartServer();
    expect(await h.ok('echo', { again: true })).toEqual({ again: true });
  });

  it('has neither repository nor settings otherwise, and is removed afterwards', async () => {
    const h = await open();
    expect(existsSync(`${h.project}/.git`)).toBe(false);
    expect(existsSync(`${h.configDir}/settings.json`)).toBe(false);
    await h.close();
    expect(existsSync(h.home)).toBe(false);
    expect(await h.processes()).toEqual([]);
    expect(await h.server.exited).toEqual({ code: 0, signal: null });
  });
});

describe('calls', () => {
  const harness = shareHarness({ program });

  it('return the answer or the error message, or fail', async () => {
    const h = harness();
    expect(await h.ok('echo', { a: 1 })).toEqual({ a: 1 });
    expect(await h.fails('fail', { code: 'TIMEOUT' }, 'TIMEOUT')).toBe('it went wrong');
    await expect(h.ok('fail', { code: 'TIMEOUT' })).rejects.toThrow('fail failed: {"error":"Error [TIMEOUT]');
    await expect(h.fails('fail', { code: 'TIMEOUT' }, 'CANCELLED')).rejects.toThrow('"Error [CANCELLED]: …", but said');
    await expect(h.fails('echo', { a: 1 }, 'CANCELLED')).rejects.toThrow('but answered: {"a":1}');
  });

  it('reject an answer whose text and structured content differ', async () => {
    const h = harness();
    await expect(h.call('contradict', {})).rejects.toThrow('two different things');
  });

  it('wait for a request, decide it and wait until the session is at rest', async () => {
    const h = harness();
    expect(await h.waitForRequest('s1')).toMatchObject({ requestId: 'r1' });
    await expect(h.waitUntilRest('s1', { within: 50 })).rejects.toThrow('Not within 50 ms: the session is at rest');
    await h.deny('s1', { message: 'no' });
    expect(await h.waitUntilRest('s1')).toMatchObject({ status: 'idle', decision: 'deny' });
  });
});

describe('clean-up', () => {
  const askTheModel = (h: Harness): Promise<unknown> =>
    fetch(`${h.model.url}/v1/messages`, { method: 'POST', body: '{"messages":[]}' });

  it('fails if a process is left, and kills it', async () => {
    const h = await open({ graceMs: 1_000 });
    const { pid } = await h.ok('leave_process', {});
    expect((await h.processes()).map((found) => found.pid).sort()).toEqual(expect.arrayContaining([h.server.pid, pid]));
    await expect(h.close()).rejects.toThrow(new RegExp(`Still alive 1000 ms after[^]*\\n  ${pid} sh -c while`));
    expect(await h.processes()).toEqual([]);
  });

  it('fails on an unhandled rejection in stderr, unexpected model requests and foreign output, and reports each', async () => {
    const h = await open();
    await h.ok('reject_unhandled', {});
    await askTheModel(h);
    // The last one shares a line with the answer, so the call gets no answer.
    for (const text of ['hello\n', '\n', 'no end of line'])
      await h.call('print', { text }, { timeout: 300 }).catch(() => undefined);
    const failure = await h.close().then(
      () => 'nothing',
      (error: unknown) => String(error),
    );
    expect(failure).toContain('nobody cares');
    expect(failure).toContain('what no script expects');
    expect(failure).toMatch(/stdout belongs to the protocol.*\n {2}"hello"\n {2}""\n {2}"no end of line\{/);
  });

  it('tolerates the faults the test expects', async () => {
    const h = await open({ tolerate: { stderr: true, unexpectedRequests: true } });
    await h.ok('reject_unhandled', {});
    await askTheModel(h);
    await h.close();
  });
});

describe('a server that does not start', () => {
  it('is reported with its stderr', async () => {
    await expect(open({ args: ['--refuse-to-start'] })).rejects.toThrow('bad value of --refuse-to-start');
  });

  it('can be examined', async () => {
    const h = await startHarness({ program, args: ['--refuse-to-start'], connect: false });
    expect(await h.server.exited).toEqual({ code: 2, signal: null });
    expect(h.server.stderr()).toBe('bad value of --refuse-to-start\n');
  });
});

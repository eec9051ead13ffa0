import { expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { stillAlive, treeBelow, type TreeProcess } from '../harness/process-tree.ts';
import { endlessCommand } from '../harness/running-command.ts';

/*
 * What has to be gone is found by parents here, not by marks in the environment: Windows has nothing else, and there
 * these are the tests of it.
 */

// Listing processes takes a second on Windows, and each test does it again and again.
const SHUT_DOWN_MS = 5_000;
const WATCHDOG_MS = 10_000;

interface Scene {
  readonly sessionId: string;
  /** Claude Code and all below it. */
  readonly tree: TreeProcess[];
}

/** What a session's process started, once its command runs. */
async function running(h: Harness, sessionId: string, name: string): Promise<Scene> {
  return eventually(
    async () => {
      const all = await treeBelow(h.server.pid);
      const cli = all.find(({ command }) => command.includes(sessionId) && command.includes('stream-json'));
      const tree = cli === undefined ? [] : await treeBelow(cli.pid);
      const runs = tree.some(({ command, pid }) => command.includes(`never-${name}`) && pid !== cli?.pid);
      return runs && { sessionId, tree };
    },
    { what: 'the command runs', within: 40_000 },
  );
}

/** A session whose command runs until somebody stops it. */
async function startScene(h: Harness, name: string): Promise<Scene> {
  h.model.on(`run ${name}`).reply(endlessCommand(name));
  return running(h, await h.begin(`run ${name}`, { allowedTools: ['Bash'] }), name);
}

/** The endless command sleeps a second at a time. */
const lasts = ({ command }: TreeProcess): boolean => !/^sleep\b/.test(command);

async function gone(processes: readonly TreeProcess[], within: number): Promise<void> {
  await eventually(
    async () => {
      expect(await stillAlive(processes)).toEqual([]);
      return true;
    },
    { what: 'all of them are gone', within },
  );
}

test('a Claude Code that is killed, a cancel and the end of stdin each end what they have to, and nothing else', async () => {
  const h = await startHarness();
  const [killed, other] = await Promise.all([startScene(h, 'killed'), startScene(h, 'other')]);
  process.kill(killed.tree[0]!.pid, 'SIGKILL');
  const crashed = await h.waitUntilRest(killed.sessionId);
  expect(crashed).toMatchObject({ status: 'error', result: { isError: true, errorSubtype: 'process_exited' } });
  if (process.platform !== 'win32')
    expect(crashed.result.result).toMatch(/exited before it answered \(signal SIGKILL.*\)\. A reply resumes/s);
  await gone(killed.tree, SHUT_DOWN_MS);
  const lasting = other.tree.filter(lasts);
  expect(await stillAlive(lasting)).toEqual(lasting);

  // It resumes with its history.
  const again = h.model.on('go on').reply(endlessCommand('again'));
  await h.say(killed.sessionId, 'go on');
  const resumed = await running(h, killed.sessionId, 'again');
  expect(h.model.requestsFor(again)[0]?.userTexts.join('\n')).toContain('run killed');

  await h.ok('claude_code_session', { action: 'cancel', sessionId: other.sessionId });
  await gone(other.tree, SHUT_DOWN_MS);
  const staying = [...(await treeBelow(h.server.pid)).slice(0, 1), ...resumed.tree.filter(lasts)];
  expect(await stillAlive(staying)).toEqual(staying);

  const whole = await treeBelow(h.server.pid);
  h.server.closeStdin();
  await gone(whole, SHUT_DOWN_MS);
  expect(await h.server.exited).toEqual({ code: 0, signal: null });
});

test('a server that is killed leaves nothing', async () => {
  const h = await startHarness();
  await startScene(h, 'scene');
  const whole = await treeBelow(h.server.pid);
  h.server.kill('SIGKILL');
  await gone(whole, WATCHDOG_MS);
});

import { expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { stillAlive, treeBelow, type TreeProcess } from '../harness/process-tree.ts';
import { endlessCommand } from '../harness/running-command.ts';

/*
 * Processes are found by their parents here, not by marks in the environment: on Windows there is no other way, and no
 * other test of this.
 */

const SHUT_DOWN_MS = 5_000;
const WATCHDOG_MS = 10_000;

interface Scene {
  readonly sessionId: string;
  /** Claude Code and its descendants. */
  readonly tree: TreeProcess[];
}

/** The process tree of a session, once its command is running. */
async function waitForTree(h: Harness, sessionId: string, name: string): Promise<Scene> {
  return eventually(
    async () => {
      const all = await treeBelow(h.server.pid);
      const cli = all.find(({ command }) => command.includes(sessionId) && command.includes('stream-json'));
      const tree = cli === undefined ? [] : await treeBelow(cli.pid);
      const runs = tree.some(({ command, pid }) => command.includes(`never-${name}`) && pid !== cli?.pid);
      return runs && { sessionId, tree };
    },
    { what: 'the command is running', within: 40_000 },
  );
}

/** A session whose command runs until it is stopped. */
async function startScene(h: Harness, name: string): Promise<Scene> {
  h.model.on(`run ${name}`).reply(endlessCommand(name));
  return waitForTree(h, await h.begin(`run ${name}`, { allowedTools: ['Bash'] }), name);
}

/** The endless command starts a new `sleep` every second. */
const lasts = ({ command }: TreeProcess): boolean => !/^sleep\b/.test(command);

async function expectGone(processes: readonly TreeProcess[], within: number): Promise<void> {
  await eventually(
    async () => {
      expect(await stillAlive(processes)).toEqual([]);
      return true;
    },
    { what: 'all these processes are gone', within },
  );
}

test('killing Claude Code, cancelling a session and closing stdin each end the processes they should, and no others', async () => {
  const h = await startHarness();
  const [killed, other] = await Promise.all([startScene(h, 'killed'), startScene(h, 'other')]);
  process.kill(killed.tree[0]!.pid, 'SIGKILL');
  const crashed = await h.waitUntilRest(killed.sessionId);
  expect(crashed).toMatchObject({ status: 'error', result: { isError: true, errorSubtype: 'process_exited' } });
  if (process.platform !== 'win32')
    expect(crashed.result.result).toMatch(/exited before it answered \(signal SIGKILL.*\)\. A reply resumes/s);
  await expectGone(killed.tree, SHUT_DOWN_MS);
  const lasting = other.tree.filter(lasts);
  expect(await stillAlive(lasting)).toEqual(lasting);

  // It resumes with its history.
  const again = h.model.on('go on').reply(endlessCommand('again'));
  await h.say(killed.sessionId, 'go on');
  const resumed = await waitForTree(h, killed.sessionId, 'again');
  expect(h.model.requestsFor(again)[0]?.userTexts.join('\n')).toContain('run killed');

  await h.ok('claude_code_session', { action: 'cancel', sessionId: other.sessionId });
  await expectGone(other.tree, SHUT_DOWN_MS);
  const staying = [...(await treeBelow(h.server.pid)).slice(0, 1), ...resumed.tree.filter(lasts)];
  expect(await stillAlive(staying)).toEqual(staying);

  const whole = await treeBelow(h.server.pid);
  h.server.closeStdin();
  await expectGone(whole, SHUT_DOWN_MS);
  expect(await h.server.exited).toEqual({ code: 0, signal: null });
});

test('a killed server leaves no process behind', async () => {
  const h = await startHarness();
  await startScene(h, 'scene');
  const whole = await treeBelow(h.server.pid);
  h.server.kill('SIGKILL');
  await expectGone(whole, WATCHDOG_MS);
});

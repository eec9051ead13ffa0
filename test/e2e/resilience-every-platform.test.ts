import { expect, test } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
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
  readonly h: Harness;
  readonly sessionId: string;
  readonly cli: TreeProcess;
  /** The server and all below it. */
  readonly tree: TreeProcess[];
}

/** A session whose command runs until somebody stops it. */
async function startScene(): Promise<Scene> {
  const h = await startHarness();
  h.model.on('run it').reply(endlessCommand('scene'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'run it', allowedTools: ['Bash'] });
  return eventually(
    async () => {
      const tree = await treeBelow(h.server.pid);
      const cli = tree.find(({ command }) => command.includes(sessionId) && command.includes('stream-json'));
      const runs = cli && tree.some(({ command, pid }) => command.includes('never-scene') && pid !== cli.pid);
      return cli && runs && { h, sessionId, cli, tree };
    },
    { what: 'the command runs', within: 40_000 },
  );
}

async function gone(processes: readonly TreeProcess[], within: number): Promise<void> {
  await eventually(
    async () => {
      expect(await stillAlive(processes)).toEqual([]);
      return true;
    },
    { what: 'all of them are gone', within },
  );
}

test('the end of stdin ends the whole tree', async () => {
  const { h, tree } = await startScene();
  h.server.closeStdin();
  await gone(tree, SHUT_DOWN_MS);
  expect(await h.server.exited).toEqual({ code: 0, signal: null });
});

test('a server that is killed leaves nothing', async () => {
  const { h, tree } = await startScene();
  h.server.kill('SIGKILL');
  await gone(tree, WATCHDOG_MS);
});

test('cancel ends Claude Code and its command, and nothing else', async () => {
  const { h, sessionId, cli, tree } = await startScene();
  const below = new Set((await treeBelow(cli.pid)).map(({ pid }) => pid));
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
  await gone(
    tree.filter(({ pid }) => below.has(pid)),
    SHUT_DOWN_MS,
  );
  const others = tree.filter(({ pid }) => !below.has(pid));
  expect(await stillAlive(others)).toEqual(others);
});

test('a Claude Code that is killed takes its command along, and a reply resumes the session', async () => {
  const { h, sessionId, cli } = await startScene();
  const below = await treeBelow(cli.pid);
  process.kill(cli.pid, 'SIGKILL');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'error' });
  await gone(below, SHUT_DOWN_MS);
  const again = h.model.on('go on').reply(text('I remember'));
  await h.ok('claude_code_reply', { sessionId, prompt: 'go on' });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'I remember' } });
  expect(h.model.requestsFor(again)[0]?.userTexts.join('\n')).toContain('run it');
});

import { expect, onTestFinished, test } from 'vitest';
import { SyntheticAgent, syntheticEngine } from '../../scripts/bench/synthetic-agent.ts';
import { findGitBash, type GitBash } from '../../src/config/needed-programs.ts';
import type { AgentLaunch, AgentProcess } from '../../src/driver/agent-process.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { DomainError } from '../../src/errors/errors.ts';

const SHAPE = { steps: 0, partials: 0 };
const FILE = 'D:\\Git\\bin\\bash.exe';

/** A session start on a Windows machine with these files. */
function engineWhere(files: readonly string[], launches: AgentLaunch[], fails = false): Engine {
  const host = { platform: 'win32' as const, env: { PATH: 'D:\\Git\\cmd' } };
  const bash = (): GitBash => findGitBash(host, undefined, (file) => files.includes(file));
  const engine = syntheticEngine(SHAPE, [], {
    findGitBash: bash,
    driver: {
      launch: async (launch, listener) => {
        launches.push(launch);
        if (fails) throw new DomainError('INTERNAL', 'Claude Code did not start: exit code 1');
        return new SyntheticAgent(launch, listener, SHAPE) as unknown as AgentProcess;
      },
    },
  });
  onTestFinished(() => engine.close());
  return engine;
}

test('Claude Code gets the path of the Git Bash that was found, without a warning', async () => {
  const launches: AgentLaunch[] = [];
  const session = await engineWhere([FILE], launches).start({ prompt: 'hello', options: {} });
  expect(launches[0]?.env).toMatchObject({ CLAUDE_CODE_GIT_BASH_PATH: FILE });
  expect(session.warnings).toEqual([]);
});

test('a start without Git Bash warns, with the remedy', async () => {
  const session = await engineWhere([], []).start({ prompt: 'hello', options: {} });
  expect(session.warnings).toEqual([expect.stringMatching(/Git Bash: .*Install Git for Windows/)]);
});

test('a start that fails without Git Bash names it and the remedy', async () => {
  await expect(engineWhere([], [], true).start({ prompt: 'hello', options: {} })).rejects.toMatchObject({
    code: 'INTERNAL',
    message: expect.stringMatching(/exit code 1 Git Bash: .*CLAUDE_CODE_GIT_BASH_PATH/) as string,
  });
});

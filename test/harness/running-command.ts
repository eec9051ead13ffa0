/** A session with a command that runs until it is stopped, and must not be left behind. */

import { tool } from '../../src/scripted-model/reply.ts';
import { eventually } from './eventually.ts';
import type { MarkedProcess } from './marked-processes.ts';
import type { Harness } from './open-harness.ts';

export interface RunningCommand {
  readonly sessionId: string;
  /** The Claude Code process of the session. */
  readonly cli: MarkedProcess;
  /** The shell that runs the command. */
  readonly command: MarkedProcess;
}

/** Starts a session and returns once its command is running. `name` distinguishes several in one test. */
export async function startRunningCommand(
  h: Harness,
  name = 'endless',
  options: Readonly<Record<string, unknown>> = {},
): Promise<RunningCommand> {
  const prompt = `run ${name} until stopped`;
  h.model.on(prompt).reply(endlessCommand(name));
  const { sessionId } = await h.ok('claude_code', { prompt, cwd: h.project, allowedTools: ['Bash'], ...options });
  return { sessionId, ...(await runningProcesses(h, sessionId, name)) };
}

/** A Bash call that never ends on its own. */
export function endlessCommand(name: string): ReturnType<typeof tool> {
  return tool('Bash', { command: `until [ -f never-${name} ]; do sleep 1; done`, description: 'wait' });
}

export async function runningProcesses(
  h: Harness,
  sessionId: string,
  name: string,
): Promise<Pick<RunningCommand, 'cli' | 'command'>> {
  return eventually(
    async () => {
      const all = await h.processes();
      const cli = all.find(({ command }) => command.includes(sessionId) && command.includes('stream-json'));
      const command = all.find(({ command: line }) => line.includes(`never-${name}`));
      return cli && command && { cli, command };
    },
    { what: `the command ${name} is running` },
  );
}

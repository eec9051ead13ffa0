import { printable } from '../terminal/printable.ts';
import type { HubCommandContext } from './run-hub.ts';
import { hubState } from './running-hub.ts';

/** As systemctl has it. */
const NOT_RUNNING = 3;

export async function showStatus({ settings }: HubCommandContext, options: readonly string[]): Promise<number> {
  const state = await hubState(settings.stateDir);
  if (options.includes('--json')) {
    const {
      argv: _argv,
      ok: _ok,
      ...status
    } = (state.kind === 'running' ? state.status : {}) as Record<string, unknown>;
    process.stdout.write(`${JSON.stringify({ running: state.kind === 'running', ...status }, null, 2)}\n`);
  } else process.stdout.write(textOf(state));
  return state.kind === 'running' ? 0 : NOT_RUNNING;
}

function textOf(state: Awaited<ReturnType<typeof hubState>>): string {
  switch (state.kind) {
    case 'stopped':
      return 'No hub is running. Start one with: claude-code-mcp hub start\n';
    case 'unreachable':
      return printable`The hub does not respond: ${state.why}.\n`;
    case 'running': {
      const { pid, version, url, startedAt, sessions, working, connections } = state.status;
      return [
        printable`The hub is running: ${url}`,
        printable`  version   ${version}, pid ${String(pid)}, since ${startedAt}`,
        `  sessions  ${String(sessions)}, ${String(working)} working`,
        `  clients   ${String(connections)} attached`,
        '',
      ].join('\n');
    }
  }
}

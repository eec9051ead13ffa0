import type { SessionOptions } from '../schema/session-options.ts';
import { liesIn } from './directories.ts';
import type { SessionSeed } from './session-types.ts';

/** The options whose values are never stored: whoever continues the session in another process has to bring them again. */
export function secretNamesOf({ env, mcpServers, settings, agents }: SessionOptions): string[] {
  return [
    ...Object.keys(env ?? {}).map((name) => `env.${name}`),
    ...(mcpServers === undefined ? [] : ['mcpServers']),
    ...(settings === undefined ? [] : ['settings']),
    ...(JSON.stringify(agents ?? {}).includes('"mcpServers"') ? ['agents'] : []),
  ];
}

interface Portable extends Pick<SessionSeed, 'options' | 'rules' | 'restored'> {
  readonly worktree?: unknown;
}

/** Whether another hub has everything it takes to continue this session. */
export function canMove(
  { options, rules, worktree, restored }: Portable,
  sharedWorkspace: string | undefined,
): boolean {
  const cwd = options.cwd ?? rules.policy.directories.own;
  return (
    sharedWorkspace !== undefined &&
    cwd !== undefined &&
    worktree === undefined &&
    options.persistSession !== false &&
    secretNamesOf(options).length === 0 &&
    // One that once had to stay does not have its whole past elsewhere.
    restored?.movable !== false &&
    liesIn([sharedWorkspace], rules.policy.directories.realPath(cwd))
  );
}

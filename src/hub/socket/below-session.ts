import { withDepthOfAncestors, type Settings } from '../../config/load-settings.ts';

/**
 * Whether this process runs inside a session, according to its own environment or that of an ancestor. An agent must
 * not be able to make itself an admin.
 */
export function runsBelowSession(settings: Settings, platform: NodeJS.Platform = process.platform): boolean {
  return withDepthOfAncestors(settings, platform).depth > 0;
}

/** One line for the commands that refuse. */
export function refusedBelowSession(command: string): string {
  return `${command} does not run inside a session of Claude Code: an agent must not be able to give itself more permissions. Run it in your own terminal.`;
}

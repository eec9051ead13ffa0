import type { PermissionMode } from '../../../src/schema/session-options.ts';

export type { PermissionMode };

const WORDS: Record<PermissionMode, string> = {
  default: 'Asks before it changes or runs anything',
  acceptEdits: 'Edits files without asking',
  plan: 'Plans first and asks before it begins',
  dontAsk: 'Denies what is not allowed beforehand',
  auto: 'Claude Code decides what to ask about',
  bypassPermissions: 'Asks nothing at all',
};

export const PERMISSION_MODES = Object.keys(WORDS) as PermissionMode[];

export function modeWords(mode: PermissionMode): string {
  return WORDS[mode];
}

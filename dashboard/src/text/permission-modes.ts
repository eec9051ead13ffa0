import type { PermissionMode } from '../../../src/schema/session-options.ts';

export type { PermissionMode };

const WORDS: Record<PermissionMode, string> = {
  default: 'Asks before it changes or runs anything',
  acceptEdits: 'Edits files without asking',
  plan: 'Plans first and asks before it starts',
  dontAsk: 'Denies anything not allowed in advance',
  auto: 'Claude Code decides what to ask about',
  bypassPermissions: 'Never asks',
};

export const PERMISSION_MODES = Object.keys(WORDS) as PermissionMode[];

export function modeWords(mode: PermissionMode): string {
  return WORDS[mode];
}

import type { Settings } from '../config/load-settings.ts';
import type { Tool } from './define-tool.ts';
import { claudeCode } from './tools/compact/claude-code.ts';
import { claudeCodeCheck } from './tools/compact/claude-code-check.ts';
import { claudeCodeReply } from './tools/compact/claude-code-reply.ts';
import { claudeCodeSession } from './tools/compact/claude-code-session.ts';

export const TOOLSETS: Record<Settings['toolset'], readonly Tool[]> = {
  compact: [claudeCode, claudeCodeReply, claudeCodeCheck, claudeCodeSession],
  explicit: [],
};

import type { Settings } from '../config/load-settings.ts';
import type { Tool } from './define-tool.ts';
import { claudeCode } from './tools/compact/claude-code.ts';
import { claudeCodeCheck } from './tools/compact/claude-code-check.ts';
import { claudeCodeReply } from './tools/compact/claude-code-reply.ts';
import { claudeCodeSession } from './tools/compact/claude-code-session.ts';
import { claudeCreateSession } from './tools/explicit/claude-create-session.ts';
import { claudeGetStatus } from './tools/explicit/claude-get-status.ts';
import { claudeInterrupt } from './tools/explicit/claude-interrupt.ts';
import { claudeListSessions } from './tools/explicit/claude-list-sessions.ts';
import { claudeRespond } from './tools/explicit/claude-respond.ts';
import { claudeSendMessage } from './tools/explicit/claude-send-message.ts';

export const TOOLSETS: Record<Settings['toolset'], readonly Tool[]> = {
  compact: [claudeCode, claudeCodeReply, claudeCodeCheck, claudeCodeSession],
  explicit: [
    claudeCreateSession,
    claudeSendMessage,
    claudeGetStatus,
    claudeRespond,
    claudeInterrupt,
    claudeListSessions,
  ],
};

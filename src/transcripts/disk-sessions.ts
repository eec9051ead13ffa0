/** The sessions Claude Code has on this machine: every client's, a terminal's too. */

import type { SDKSessionInfo } from '@anthropic-ai/claude-agent-sdk';
import { readLastCostUsd } from './cost-state.ts';
import { displayText } from './display-text.ts';
import { fileIncludes } from './search-from-end.ts';
import { findSessionFile, isSessionId } from './session-files.ts';

export interface DiskSession {
  readonly sessionId: string;
  /** The session's own word, not checked: the directory may be gone, or not be the one that was asked for. */
  readonly projectDirectory: string | undefined;
  readonly displayText: string;
  readonly lastModified: number;
  readonly createdAt?: number;
}

export interface FoundSession {
  readonly sessionId: string;
  /** Claude Code resumes the session only from here. */
  readonly cwd: string | undefined;
  readonly file: string | undefined;
}

export interface ListRequest {
  readonly projectDirectory?: string | undefined;
  readonly limit: number;
  readonly offset: number;
}

export interface Transcripts {
  /** Newest first. What is skipped by `offset` is read too: about 2.5 ms a session. */
  list(request: ListRequest): Promise<DiskSession[]>;
  find(sessionId: string): Promise<FoundSession | undefined>;
  /** What a process that resumes or forks the session starts to count from. */
  lastCostUsd(sessionId: string): Promise<number>;
  /** Whether the session can be resumed at this message; Claude Code takes any entry that has a uuid. */
  messageExists(sessionId: string, uuid: string): Promise<boolean>;
}

/** The Agent SDK takes the directory from CLAUDE_CONFIG_DIR of this process: `configDir` must be the same. */
export function createTranscripts({ configDir }: { readonly configDir: string }): Transcripts {
  return {
    async list({ projectDirectory, limit, offset }) {
      // The SDK takes 0 for no limit, and then holds every transcript in memory at once.
      if (limit <= 0) return [];
      const { listSessions } = await import('@anthropic-ai/claude-agent-sdk');
      const place = projectDirectory === undefined ? {} : { dir: projectDirectory, includeWorktrees: false };
      return (await listSessions({ ...place, limit, offset })).map(toDiskSession);
    },

    async find(sessionId) {
      if (!isSessionId(sessionId)) return undefined;
      const { getSessionInfo } = await import('@anthropic-ai/claude-agent-sdk');
      const [info, file] = await Promise.all([getSessionInfo(sessionId), findSessionFile(configDir, sessionId)]);
      return info && { sessionId, cwd: info.cwd, file };
    },

    async lastCostUsd(sessionId) {
      const file = await findSessionFile(configDir, sessionId);
      if (file === undefined) return 0;
      // Claude Code cannot read it either, and says so when it resumes.
      return readLastCostUsd(file, sessionId).catch(() => 0);
    },

    async messageExists(sessionId, uuid) {
      const file = isSessionId(uuid) ? await findSessionFile(configDir, sessionId) : undefined;
      if (file === undefined) return false;
      return fileIncludes(file, `"uuid":"${uuid}"`).catch(() => false);
    },
  };
}

function toDiskSession(info: SDKSessionInfo): DiskSession {
  return {
    sessionId: info.sessionId,
    projectDirectory: info.cwd,
    displayText: displayText(info.summary),
    lastModified: info.lastModified,
    ...(info.createdAt === undefined ? {} : { createdAt: info.createdAt }),
  };
}

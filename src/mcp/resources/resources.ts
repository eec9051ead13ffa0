import type {
  ListResourcesResult,
  ListResourceTemplatesResult,
  ReadResourceResult,
} from '@modelcontextprotocol/server';
import type { EngineClient } from '../../engine/engine-client.ts';
import type { Session } from '../../engine/session.ts';
import { actionView, askedPerson } from '../views/action-view.ts';
import { activityLine } from '../views/activity-line.ts';
import { resultView } from '../views/result-view.ts';
import { sessionView } from '../views/session-view.ts';
import { transcriptText } from './transcript.ts';
import { parseUri, SESSIONS_URI, sessionUri } from './uris.ts';

const MAX_LISTED = 50;
const DIFF_BYTES = 1_000_000;

/** The list itself, and the sessions that were active last. */
export function listResources(sessions: readonly Session[]): ListResourcesResult {
  const newest = sessions.toSorted((a, b) => b.lastActiveAt - a.lastActiveAt).slice(0, MAX_LISTED);
  return {
    resources: [
      {
        uri: SESSIONS_URI,
        name: 'sessions',
        title: 'Claude Code sessions',
        description: 'The sessions with their status, cost and activity.',
        mimeType: 'application/json',
      },
      ...newest.map((session) => ({
        uri: sessionUri(session.id),
        name: `session ${session.id.slice(0, 8)}`,
        title: session.topic === '' ? `Session ${session.id.slice(0, 8)}` : session.topic,
        description: activityLine(session),
        mimeType: 'application/json',
      })),
    ],
  };
}

export function listResourceTemplates(): ListResourceTemplatesResult {
  const template = (suffix: string, name: string, description: string, mimeType: string) => ({
    uriTemplate: `${SESSIONS_URI}/{id}${suffix}`,
    name,
    description,
    mimeType,
  });
  return {
    resourceTemplates: [
      template('', 'session', 'A session: status, open requests, last result.', 'application/json'),
      template('/transcript', 'transcript', 'What was said and done in a session.', 'text/markdown'),
      template('/diff', 'diff', 'The work of a session as a unified diff.', 'text/x-diff'),
    ],
  };
}

/** Undefined for an unknown address. Throws like the engine if the session does not exist. */
export async function readResource(engine: EngineClient, uri: string): Promise<ReadResourceResult | undefined> {
  const address = parseUri(uri);
  switch (address?.kind) {
    case undefined:
      return undefined;
    case 'sessions':
      return json(uri, { sessions: (await engine.listSessions()).sessions.map(summary) });
    case 'session':
      return json(uri, whole(await engine.session(address.id)));
    case 'transcript':
      return text(uri, 'text/markdown', transcriptText(await engine.session(address.id)));
    case 'diff': {
      const { diff, totalBytes, nextOffset } = await engine.diff(address.id, { maxBytes: DIFF_BYTES, offset: 0 });
      const cut = nextOffset === undefined ? '' : `\nThe first ${nextOffset} of ${totalBytes} bytes.\n`;
      return text(uri, 'text/x-diff', diff + cut);
    }
  }
}

function summary(session: Session): object {
  return { ...sessionView(session, false), title: session.topic, activity: activityLine(session) };
}

function whole(session: Session): object {
  const result = resultView(session, {
    includeUsage: false,
    includeModelUsage: false,
    includeStructuredOutput: true,
    includeWork: 'short',
    offset: 0,
    maxChars: Infinity,
  })?.result;
  const actions = session.requests.map((request) => ({
    ...actionView(request, { now: session.now, whole: true }),
    ...askedPerson(session, request),
  }));
  return { ...summary(session), ...(actions.length > 0 && { actions }), ...(result && { result }) };
}

function json(uri: string, value: object): ReadResourceResult {
  return text(uri, 'application/json', JSON.stringify(value, undefined, 2));
}

function text(uri: string, mimeType: string, content: string): ReadResourceResult {
  return { contents: [{ uri, mimeType, text: content }] };
}

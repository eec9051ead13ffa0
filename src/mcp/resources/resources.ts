import type {
  ListResourcesResult,
  ListResourceTemplatesResult,
  ReadResourceResult,
} from '@modelcontextprotocol/server';
import type { EngineClient } from '../../engine/client.ts';
import type { SessionReading } from '../../engine/conversation/reading.ts';
import type { SessionRecord } from '../../schema/records.ts';
import { actionView, askedPerson } from '../../views/action-view.ts';
import { resultView } from '../../views/result-view.ts';
import { sessionView } from '../../views/session-view.ts';
import { transcriptText } from './transcript.ts';
import { parseUri, SESSIONS_URI, sessionUri } from './uris.ts';

const MAX_LISTED = 50;
const DIFF_BYTES = 1_000_000;

/** The list itself, and the sessions that were active last. */
export function listResources(sessions: readonly SessionRecord[]): ListResourcesResult {
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
        title: session.title === '' ? `Session ${session.id.slice(0, 8)}` : session.title,
        description: session.activity,
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
      return json(uri, { sessions: (await engine.list()).sessions.map(summary) });
    case 'session':
      return json(uri, whole(await engine.read(address.id)));
    case 'transcript':
      return text(uri, 'text/markdown', transcriptText(await engine.read(address.id)));
    case 'diff': {
      const { diff, totalBytes, nextOffset } = await engine.execute<'diff'>({
        kind: 'diff',
        sessionId: address.id,
        maxBytes: DIFF_BYTES,
        offset: 0,
      });
      const cut = nextOffset === undefined ? '' : `\nThe first ${nextOffset} of ${totalBytes} bytes.\n`;
      return text(uri, 'text/x-diff', diff + cut);
    }
  }
}

function summary(record: SessionRecord): object {
  return { ...sessionView(record, false), title: record.title, activity: record.activity };
}

function whole(reading: SessionReading): object {
  const { record, requests, now } = reading;
  const result = resultView(record, {
    includeUsage: false,
    includeModelUsage: false,
    includeStructuredOutput: true,
    includeWork: 'short',
    offset: 0,
    maxChars: Infinity,
  })?.result;
  const actions = requests.map((request) => ({
    ...actionView(request, { now, whole: true }),
    ...askedPerson(reading, request),
  }));
  return { ...summary(record), ...(actions.length > 0 && { actions }), ...(result && { result }) };
}

function json(uri: string, value: object): ReadResourceResult {
  return text(uri, 'application/json', JSON.stringify(value, undefined, 2));
}

function text(uri: string, mimeType: string, content: string): ReadResourceResult {
  return { contents: [{ uri, mimeType, text: content }] };
}

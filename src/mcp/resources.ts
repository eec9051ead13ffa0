import type {
  ListResourcesResult,
  ListResourceTemplatesResult,
  ReadResourceResult,
} from '@modelcontextprotocol/server';
import type { EngineClient } from '../engine/client.ts';
import type { SessionReading } from '../engine/conversation/reading.ts';
import { shortenText, summarizeTool } from '../engine/conversation/tool-summary.ts';
import type { MessageRole } from '../schema/enums.ts';
import type { EventBody, MessageBlock } from '../schema/events.ts';
import type { ShownRecord } from '../schema/records.ts';
import { actionView, askedPerson, requestSummary } from '../views/action-view.ts';
import { resultView } from '../views/result-view.ts';
import { sessionView } from '../views/session-view.ts';
import { parseUri, SESSIONS_URI, sessionUri } from './resource-updates.ts';

const MAX_LISTED = 50;
const DIFF_BYTES = 1_000_000;

/** The list itself, and the sessions that were active last. */
export function listResources(sessions: readonly ShownRecord[]): ListResourcesResult {
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

function summary(record: ShownRecord): object {
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
    ...actionView(request, { now, whole: true, once: false }),
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

/** Enough of a tool's output to see what it was. */
const OUTPUT_CHARS = 2_000;

/** A readable conversation: what was said in full, what was done in short. */
function transcriptText({ record, log }: SessionReading): string {
  const { events, resetTo } = log.from(1);
  const parts = events.flatMap(({ body }) => bodyText(body));
  const title = record.title === '' ? record.id : record.title;
  const dropped = resetTo === undefined ? [] : ['*The beginning is left out.*'];
  return `${[`# ${title}`, ...dropped, ...parts].join('\n\n')}\n`;
}

function bodyText(body: EventBody): string[] {
  switch (body.kind) {
    case 'message':
      return body.blocks.flatMap((block) => blockText(block, body.role));
    case 'prompt': {
      const said = body.text.slice(body.preamble ?? 0).trim();
      return said === '' ? [] : [`## User\n\n${said}`];
    }
    case 'permission_request':
      return [`**Asks:** ${requestSummary(body.request)}`];
    case 'permission_result':
      return [`**${body.decision === 'allow' ? 'Allowed' : 'Denied'}** by ${body.source}: ${body.toolName}`];
    case 'error':
      return [`**Error:** ${body.message}`];
    default:
      // The result repeats the last message; the rest says nothing about the conversation.
      return [];
  }
}

function blockText(block: MessageBlock, role: MessageRole): string[] {
  switch (block.kind) {
    case 'text':
      return [`## ${role === 'user' ? 'User' : 'Claude'}\n\n${block.text}`];
    case 'tool_call':
      return [`**${block.toolName}** ${summarizeTool(block.toolName, block.input)}`];
    case 'tool_result':
      return [fenced(shortenText(block.output, OUTPUT_CHARS, block.output))];
    case 'thinking':
    case 'other':
      return [];
  }
}

/** A fence longer than any inside. */
function fenced(output: string): string {
  const longest = Math.max(2, ...[...output.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${output}\n${fence}`;
}

import type { ElicitRequestFormParams } from '@modelcontextprotocol/server';
import { cutAt, oneLine } from '../../engine/conversation/tool-summary.ts';
import type { Asker, FormEnd } from '../../engine/requests/approvals.ts';
import { SHOWN_CHARS } from '../../engine/requests/shown-request.ts';
import type { Answer } from '../../schema/commands.ts';
import { escapeSequence, visibleLines, visiblePieces, type Piece } from '../../text/invisible.ts';

/** What a person is shown about one request, and how their answer is read. */
export interface Form {
  readonly message: string;
  readonly requestedSchema: ElicitRequestFormParams['requestedSchema'];
  /** What an accepted form says; `undefined` if the content is not what was asked for. */
  read(content: unknown): Answer | undefined;
  /** What Claude is told when the person declines. */
  readonly declined: string;
}

/** What a client can show. */
export interface FormAbilities {
  /** Lists of choices: since protocol 2025-11-25. */
  readonly multiSelect: boolean;
}

/** What the client sent back for a form, or why nothing usable came. */
export type FormReturn =
  { action: 'accept' | 'decline' | 'cancel'; content?: unknown } | { action: 'failed'; why: string };

/** What it means for the request. */
export function formEnd(form: Form, returned: FormReturn): FormEnd {
  switch (returned.action) {
    case 'accept': {
      const answer = form.read(returned.content);
      return answer
        ? { kind: 'answered', answer }
        : { kind: 'closed', why: 'the form returned something other than what was asked for' };
    }
    case 'decline':
      return { kind: 'answered', answer: { decision: 'deny', message: form.declined } };
    case 'cancel':
      return { kind: 'closed', why: 'the form was closed without an answer' };
    case 'failed':
      return { kind: 'lost', why: `the form failed: ${returned.why}` };
  }
}

/** No system has longer ones. */
export const MAX_PATH_LENGTH = 4_096;

/** A run of one invisible character is spelled out up to this length, and counted beyond. */
const SPELLED_OUT = 3;

/**
 * A model's text as a person should see it before deciding: invisible characters are spelled out, runs that push the
 * rest out of sight are counted, and a long text shows its end too, because that is where a command hides its point.
 */
export function visibleText(text: string, maxChars = Infinity): string {
  const lines = visibleLines(text).map((line) =>
    line.kind === 'line' ? line.pieces.map(pieceText).join('') : `⟨${line.count} blank lines⟩`,
  );
  return cutMiddle(lines.join('\n'), maxChars);
}

/** The same for a single line. */
export function visibleLine(line: string): string {
  return visiblePieces(line).map(pieceText).join('');
}

function pieceText(piece: Piece): string {
  switch (piece.kind) {
    case 'text':
      return piece.text.replaceAll('\t', '  ');
    case 'blanks':
      return ` ⟨${piece.count} blanks⟩ `;
    case 'invisible': {
      const sequence = escapeSequence(piece.codePoint);
      return piece.count > SPELLED_OUT ? `⟨${piece.count} × ${sequence}⟩` : sequence.repeat(piece.count);
    }
  }
}

function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = cutAt(text, Math.ceil(maxChars * 0.75));
  const tail = wholeCharacters(text.slice(text.length - Math.floor(maxChars * 0.25)));
  return `${head}\n⟨${text.length - head.length - tail.length} characters not shown⟩\n${tail}`;
}

/** Half of a pair at the start is dropped. */
function wholeCharacters(text: string): string {
  const first = text.charCodeAt(0);
  return first >= 0xdc00 && first <= 0xdfff ? text.slice(1) : text;
}

/** Replaces the choice to allow when the text above is incomplete. */
export function tooLongToAllow(chars: number): string {
  return `Too long to show in full: ${chars} characters; a form shows at most ${SHOWN_CHARS}. It cannot be allowed here.`;
}

/** Which session asks. */
export function whereAsked({ id, options: { cwd = '' } }: Asker): string {
  return field('Directory', `${oneLine(cwd, MAX_PATH_LENGTH)} (session ${id.slice(0, 8)})`);
}

/** A named value. Multi-line values are prefixed with bars, so that none of their lines can pass for the form's own. */
export function field(name: string, value: string): string {
  return value.includes('\n') ? `${name}:\n${barred(value)}` : `${name}: ${value}`;
}

export function barred(text: string): string {
  return text
    .split('\n')
    .map((line) => `│ ${line}`)
    .join('\n');
}

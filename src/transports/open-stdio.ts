import type { Readable, Writable } from 'node:stream';
import type { OpeningAnswers } from './opening-answers.ts';
import { OpeningBook, type Opening } from './opening.ts';

/** How long to wait for the client's next request before loading the rest of the server. */
const PATIENCE_MS = 250;
const NEWLINE = 0x0a;
/** No opening request is longer; anything longer is left to the library. */
const MAX_OPENING_BYTES = 256 * 1024;

/**
 * Answers the requests that open a connection, until the tools are listed or something else arrives. What the library
 * still has to see is pushed back onto `input`. Resolves with undefined if the client has already disconnected.
 */
export function openStdio(answers: OpeningAnswers, input: Readable, output: Writable): Promise<Opening | undefined> {
  const book = new OpeningBook(answers);
  const answered = new Set<unknown>();
  const replay: Buffer[] = [];
  let unread: Buffer = Buffer.alloc(0);

  return new Promise((resolve) => {
    let hasListed = false;
    const finish = (gone: boolean): void => {
      clearTimeout(timer);
      input.off('data', onData);
      input.off('end', onEnd);
      input.pause();
      if (!gone) input.unshift(Buffer.concat([...replay, unread]));
      resolve(gone ? undefined : { answered, hasListed });
    };
    const onEnd = (): void => finish(true);
    const onData = (chunk: Buffer): void => {
      timer.refresh();
      unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
      for (let end = unread.indexOf(NEWLINE); end >= 0; end = unread.indexOf(NEWLINE)) {
        const line = unread.subarray(0, end + 1);
        const message = parse(line);
        const reply = book.reply(message);
        if (reply.kind === 'leave') {
          finish(false);
          return;
        }
        unread = unread.subarray(end + 1);
        if (reply.kind === 'silent' || reply.replay) replay.push(line);
        if (reply.kind !== 'answer') continue;
        if (reply.replay) answered.add(message['id']);
        else hasListed = true;
        output.write(`{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":${reply.result}}\n`);
      }
      // The answer is out; the library reads whatever else is in the pipe.
      if (hasListed || unread.length > MAX_OPENING_BYTES) finish(false);
    };
    const timer = setTimeout(() => finish(false), PATIENCE_MS);
    input.on('data', onData);
    input.on('end', onEnd);
  });
}

/** Anything that is not a message cannot be answered here. */
function parse(line: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

import process from 'node:process';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Engine } from '../engine/engine.ts';
import { LOCAL } from '../engine/rules/access.ts';
import { CallerOutbox, type Outbox } from '../mcp/outbox.ts';
import { serverFactory, type ServerFactory, type ServerIdentity } from '../mcp/server.ts';
import { FrameTransport } from './frame-transport.ts';
import type { Opening } from './opening.ts';

export interface Connection {
  close(): Promise<void>;
}

export interface StdioEvents {
  onError: (error: Error) => void;
  /** The client has its first answer: deferred work can be done now. */
  onFirstAnswer: () => void;
}

/** Serves one client over stdin and stdout, in whichever protocol era it opens with. */
export function serveOverStdio(
  engine: Engine,
  identity: ServerIdentity,
  opening: Opening | undefined,
  { onError, onFirstAnswer }: StdioEvents,
): Connection {
  const outbox = new CallerOutbox().connection();
  const transport = new OpenedTransport(opening?.answered ?? new Set(), onFirstAnswer, outbox);
  if (opening?.hasListed === true) transport.firstAnswerSent();
  return serveOver(transport, serverFactory(engine, identity, LOCAL, { outbox }), onError);
}

/** Serves one client over this transport, or over stdin and stdout. */
export function serveOver(
  transport: Transport = new FrameTransport(process.stdin, process.stdout),
  factory: ServerFactory,
  onError: (error: Error) => void,
): Connection {
  return serveStdio(factory, { transport, onerror: onError });
}

/** Suppresses answers that the opening has already given. */
class OpenedTransport extends FrameTransport {
  readonly #answered: Set<unknown>;
  #onFirstAnswer: (() => void) | undefined;

  constructor(answered: ReadonlySet<unknown>, onFirstAnswer: () => void, outbox: Outbox) {
    super(process.stdin, process.stdout, outbox);
    this.#answered = new Set(answered);
    this.#onFirstAnswer = onFirstAnswer;
  }

  override async start(): Promise<void> {
    await super.start();
    // The opening left it paused, so that nothing is lost between its listener and this one.
    process.stdin.resume();
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    const isAnswer = 'id' in message && !('method' in message);
    if (isAnswer && this.#answered.delete(message.id)) return;
    await super.send(message);
    this.firstAnswerSent();
  }

  firstAnswerSent(): void {
    const tell = this.#onFirstAnswer;
    this.#onFirstAnswer = undefined;
    // Not in the turn of the answer itself: loading blocks for long.
    if (tell) setImmediate(tell);
  }
}

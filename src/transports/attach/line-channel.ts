import type { Socket } from 'node:net';

const NEWLINE = 0x0a;

/** A socket whose first lines are read one at a time, before it is handed over unchanged. */
export class LineChannel {
  readonly socket: Socket;
  #unread: Buffer = Buffer.alloc(0);
  #limit = 0;
  #waiting: { resolve: (line: Record<string, unknown>) => void; reject: (error: Error) => void } | undefined;
  #failure: Error | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', this.#onData);
    socket.once('close', this.#onClose);
    socket.on('error', this.#onError);
  }

  /** The next line as an object. Rejects if it is too long, not an object, or never comes. */
  next(maxBytes: number): Promise<Record<string, unknown>> {
    this.#limit = maxBytes;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#look();
    });
  }

  write(value: object): void {
    this.socket.write(`${JSON.stringify(value)}\n`);
  }

  /** Hands over the socket, with everything that was not read here. */
  release(): Socket {
    this.socket.pause();
    this.socket.off('data', this.#onData);
    this.socket.off('close', this.#onClose);
    this.socket.off('error', this.#onError);
    if (this.#unread.length > 0) this.socket.unshift(this.#unread);
    return this.socket;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    this.#look();
    // Lines that are not being waited for must not fill the memory.
    if (!this.#waiting && this.#unread.length > 0) this.socket.pause();
  };

  readonly #onClose = (): void => this.#fail(this.#failure ?? new Error('the connection was closed'));
  readonly #onError = (error: Error): void => this.#fail(error);

  #look(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    if (this.#failure) {
      this.#fail(this.#failure);
      return;
    }
    const end = this.#unread.indexOf(NEWLINE);
    if (end > this.#limit || (end < 0 && this.#unread.length > this.#limit)) {
      this.#fail(new Error('a line is too long'));
      return;
    }
    if (end < 0) {
      this.socket.resume();
      return;
    }
    const line = this.#unread.subarray(0, end).toString('utf8');
    this.#unread = this.#unread.subarray(end + 1);
    const value = parse(line);
    if (!value) {
      this.#fail(new Error('a line is not a JSON object'));
      return;
    }
    this.#waiting = undefined;
    waiting.resolve(value);
  }

  #fail(error: Error): void {
    this.#failure = error;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(error);
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Raw bytes to and from a server, for requests no client would send. */

import net from 'node:net';

export interface RawAnswer {
  /** 0 if the server closed the connection without an answer. */
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Sends the bytes and whatever `later` writes; reads until the server closes or has answered once. */
export function sendRaw(
  url: string,
  bytes: string | Buffer,
  {
    later,
    withinMs = 20_000,
    untilClosed = true,
  }: { later?: (socket: net.Socket) => void; withinMs?: number; untilClosed?: boolean } = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname);
    let received = '';
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parse(received));
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`incomplete answer: ${received}`));
    }, withinMs);
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      received += chunk;
      if (!untilClosed && received.includes('\r\n\r\n')) done();
    });
    socket.on('error', () => undefined);
    socket.on('close', done);
    socket.on('connect', () => {
      socket.write(bytes);
      later?.(socket);
    });
  });
}

function parse(received: string): RawAnswer {
  const [head = '', ...body] = received.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), head, body: body.join('\r\n\r\n') };
}

export function request(lines: readonly string[], body = ''): string {
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** Between a program and its server: can cut connections, refuse new ones, or swallow what is sent. */

import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** `silent`: connections stay open, but nothing gets through. */
export type Line = 'open' | 'refused' | 'silent';

export interface TcpProxy {
  readonly port: number;
  /** `refused` cuts open connections; `silent` keeps them. */
  set(line: Line): void;
  /** Delays everything by this much. */
  delay(ms: number): void;
  close(): Promise<void>;
}

export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const pairs = new Set<[Socket, Socket]>();
  let line: Line = 'open';
  let delayMs = 0;
  const pass = (from: Socket, to: Socket): void => {
    // Keeps the order even if the delay is reduced while something is in transit.
    const inTransit: { readonly piece: Buffer; readonly due: number }[] = [];
    const deliver = (): void => {
      for (let next = inTransit[0]; next; next = inTransit[0]) {
        const leftMs = next.due - performance.now();
        if (leftMs > 0) {
          setTimeout(deliver, Math.ceil(leftMs));
          return;
        }
        inTransit.shift();
        to.write(next.piece);
      }
    };
    from.on('data', (piece) => {
      if (line === 'silent') return;
      inTransit.push({ piece, due: performance.now() + delayMs });
      if (inTransit.length === 1) deliver();
    });
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
  };
  const server = createServer((near) => {
    if (line === 'refused') {
      near.destroy();
      return;
    }
    const far = connect(target);
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    near.once('close', () => pairs.delete(pair));
    pass(near, far);
    pass(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const sockets of pairs) for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    set(next) {
      // A silent line has swallowed the middle of a stream, so such a connection is useless afterwards.
      if (next === 'refused' || (line === 'silent' && next === 'open')) cut();
      line = next;
    },
    delay(ms) {
      delayMs = ms;
    },
    close: async () => {
      cut();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

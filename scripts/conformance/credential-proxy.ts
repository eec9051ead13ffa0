/** A proxy that adds a credential to requests, because the conformance suite has no option for one. */

import { createServer, request as forward, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export async function startCredentialProxy(hubUrl: string, token: string): Promise<{ url: string; close(): void }> {
  const hub = new URL(hubUrl);
  const server: Server = createServer((incoming, outgoing) => {
    const own = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    // Its own host becomes the hub's; a foreign one is kept, so that the hub has to refuse it.
    const named = (value: string): string =>
      value.replace(own, hub.host).replace(own.replace('127.0.0.1', 'localhost'), hub.host);
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    if (headers.host !== undefined) headers.host = named(headers.host);
    if (headers.origin !== undefined) headers.origin = named(headers.origin);
    const options = { host: hub.hostname, port: hub.port, method: incoming.method, path: incoming.url, headers };
    const forwarded = forward(options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    outgoing.on('close', () => forwarded.destroy());
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  return {
    url,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

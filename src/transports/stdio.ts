import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Engine } from '../engine/engine.ts';
import { serverFactory, type ServerIdentity } from '../mcp/server.ts';

export interface StdioServer {
  close(): Promise<void>;
}

/** Serves one client over stdin and stdout, in whichever protocol era it opens with. */
export function serveOverStdio(engine: Engine, identity: ServerIdentity, onError: (error: Error) => void): StdioServer {
  return serveStdio(serverFactory(engine, identity), { onerror: onError });
}

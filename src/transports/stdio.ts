import process from 'node:process';
import type { Transport } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Engine } from '../engine/engine.ts';
import { serverFactory, type ServerIdentity } from '../mcp/server.ts';
import { FrameTransport } from './frame-transport.ts';

export interface Connection {
  close(): Promise<void>;
}

/** Serves one client in whichever protocol era it opens with, over stdin and stdout unless another transport is given. */
export function serveOverStdio(
  engine: Engine,
  identity: ServerIdentity,
  onError: (error: Error) => void,
  transport: Transport = new FrameTransport(process.stdin, process.stdout),
): Connection {
  return serveStdio(serverFactory(engine, identity), { onerror: onError, transport });
}

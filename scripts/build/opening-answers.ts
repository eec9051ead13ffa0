/** Asks the real server at build time for its answers to the first requests of a connection. */

import { InMemoryTransport, type JSONRPCMessage } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { isDeepStrictEqual } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };
import { loadSettings, type Settings } from '../../src/config/load-settings.ts';
import { SystemClock } from '../../src/engine/clock.ts';
import { Engine } from '../../src/engine/engine.ts';
import { LOCAL } from '../../src/engine/rules/access.ts';
import { serverFactory } from '../../src/mcp/server.ts';
import type { OpeningAnswers } from '../../src/transports/opening-answers.ts';

type Toolset = Settings['toolset'];
type Result = Record<string, unknown>;

const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const MODERN_VERSION = '2026-07-28';
const CLIENT = { name: 'build', version: '1' };
const identity = { name: packageJson.name, version: packageJson.version };

export const OPENING_ANSWERS: Record<Toolset, OpeningAnswers> = {
  compact: await record('compact'),
  explicit: await record('explicit'),
};

async function record(toolset: Toolset): Promise<OpeningAnswers> {
  const legacy = await Promise.all(LEGACY_VERSIONS.map((version) => recordLegacy(toolset, version)));
  const [first] = legacy;
  if (!first || !legacy.every((answers) => isDeepStrictEqual(answers, first)))
    throw new Error('The server answers protocol versions differently: record them separately.');
  return { legacy: { versions: LEGACY_VERSIONS, ...first }, modern: await recordModern(toolset) };
}

async function recordLegacy(
  toolset: Toolset,
  protocolVersion: string,
): Promise<Omit<OpeningAnswers['legacy'], 'versions'>> {
  await using connection = connect(toolset);
  const { protocolVersion: negotiated, ...initialize } = await connection.request('initialize', {
    protocolVersion,
    capabilities: {},
    clientInfo: CLIENT,
  });
  if (negotiated !== protocolVersion) throw new Error(`The server no longer supports ${protocolVersion}.`);
  await connection.notify('notifications/initialized');
  return {
    initialize: JSON.stringify(initialize),
    listTools: JSON.stringify(await connection.request('tools/list', {})),
  };
}

async function recordModern(toolset: Toolset): Promise<OpeningAnswers['modern']> {
  await using connection = connect(toolset);
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN_VERSION,
    'io.modelcontextprotocol/clientInfo': CLIENT,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return {
    versions: [MODERN_VERSION],
    discover: JSON.stringify(await connection.request('server/discover', { _meta })),
    listTools: JSON.stringify(await connection.request('tools/list', { _meta })),
  };
}

interface Connection extends AsyncDisposable {
  request(method: string, params: Result): Promise<Result>;
  notify(method: string): Promise<void>;
}

function connect(toolset: Toolset): Connection {
  const [client, server] = InMemoryTransport.createLinkedPair();
  const waiting = new Map<unknown, (message: JSONRPCMessage) => void>();
  client.onmessage = (message) => {
    if ('id' in message) waiting.get(message.id)?.(message);
  };
  const handle = serveStdio(serverFactory(idleEngine(toolset), identity, LOCAL), { transport: server });
  let lastId = 0;
  return {
    async request(method, params) {
      const id = ++lastId;
      const answered = new Promise<JSONRPCMessage>((resolve) => waiting.set(id, resolve));
      await client.send({ jsonrpc: '2.0', id, method, params });
      const answer = await answered;
      if (!('result' in answer)) throw new Error(`${method} was refused: ${JSON.stringify(answer)}`);
      return answer.result;
    },
    notify: (method) => client.send({ jsonrpc: '2.0', method }),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

/** Has only settings: listing tools needs nothing else. */
function idleEngine(toolset: Toolset): Engine {
  const host = { env: {}, cwd: process.cwd(), homedir: process.cwd(), platform: process.platform };
  const never = (): never => {
    throw new Error('Nothing is started while building.');
  };
  return new Engine(loadSettings({ ...host, argv: ['--toolset', toolset] }), host.cwd, {
    clock: new SystemClock(),
    driver: { launch: never },
    transcripts: {
      find: never,
      salvage: never,
      mentions: never,
      isProjectWrittenSince: never,
      lastCostUsd: never,
      tally: async () => ({ turns: 0, hasUnwrittenCost: false }),
      list: never,
      lock: never,
      findHolder: never,
    },
    audit: { record: () => undefined },
    configDir: '',
    isTrusted: () => Promise.resolve(true),
    baseEnv: {},
    log: () => undefined,
  });
}

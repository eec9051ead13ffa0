/**
 * `npm run bench`: measures what the product promises, everything it is compared with in the same run, and writes
 * bench/results.json. Options: --peers (other servers too), --rounds <n>, --only <words of a part, comma between>,
 * --check (measures nothing and writes nothing; prints the table of the last results), --against <directory of another
 * build> (measures both in turn and prints what each row costs compared with it; writes nothing).
 */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createHome } from '../test/harness/isolated-home.ts';
import { openHarness, type Harness } from '../test/harness/open-harness.ts';
import { compareBuilds, comparisonTable, MOST } from './bench/against.ts';
import type { Place } from './bench/bare-sdk.ts';
import { callerBytes } from './bench/caller-bytes.ts';
import { dashboardRows } from './bench/dashboard-rows.ts';
import { pollRow, throughputRow } from './bench/engine-rows.ts';
import { hubRows } from './bench/hub-rows.ts';
import { listingRow } from './bench/listing-row.ts';
import { loadRows } from './bench/load-rows.ts';
import { memoryRows } from './bench/memory-row.ts';
import { installPeers, type Peers } from './bench/peers.ts';
import { prewarmRow } from './bench/prewarm-row.ts';
import type { Machine, Peer, Results, Row } from './bench/row.ts';
import { parallelRow, sessionRows } from './bench/session-rows.ts';
import { startRows } from './bench/start-rows.ts';
import { fleetRows } from './bench/fleet-rows.ts';
import { storeRows } from './bench/store-rows.ts';
import { benchmarkTable, bytesTable, peersTable } from './bench/table.ts';
import { workspaceRows } from './bench/workspace-rows.ts';

const { values: options } = parseArgs({
  options: {
    peers: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    only: { type: 'string' },
    check: { type: 'boolean', default: false },
    against: { type: 'string' },
  },
});
const rounds = Math.max(1, Number(options.rounds));
const root = fileURLToPath(new URL('..', import.meta.url));

const machine: Machine = {
  cpu: os.cpus()[0]?.model.trim() ?? 'unknown processor',
  cores: os.availableParallelism(),
  memoryGb: Math.round(os.totalmem() / 2 ** 30),
  platform: `${process.platform} ${process.arch}`,
  load: Number((os.loadavg()[0] ?? 0).toFixed(1)),
};

/** What every build so far has a benchmark of. */
const SHARED_PARTS = ['start', 'sessions', 'prewarm', 'poll', 'events', 'memory', 'listing', 'bytes', 'parallel'];

const rows: Row[] = [];
let bytes: Record<string, number> = {};
let peers: Peer[] | undefined;

const parts: Readonly<Record<string, () => Promise<void>>> = {
  start: async () => {
    const home = await createHome();
    const installed: Peers | undefined = options.peers ? await installPeers() : undefined;
    try {
      for (const problem of installed?.problems ?? []) console.error(`not measured: ${problem}`);
      const started = await startRows(rounds * 3, home, installed?.commands ?? []);
      rows.push(...started.rows);
      if (installed) peers = started.peers;
    } finally {
      await installed?.[Symbol.asyncDispose]();
      await home.remove();
    }
  },
  sessions: () => withServer(async (harness, place) => void rows.push(...(await sessionRows(rounds, harness, place)))),
  hub: async () => void rows.push(...(await hubRows(rounds))),
  load: async () => void rows.push(...(await loadRows(rounds))),
  prewarm: async () => void rows.push(await prewarmRow(rounds)),
  poll: async () => void rows.push(await pollRow()),
  events: async () => void rows.push(await throughputRow()),
  memory: async () => void rows.push(...(await memoryRows())),
  store: async () => void rows.push(...(await storeRows())),
  listing: async () => void rows.push(await listingRow(rounds)),
  fleet: async () => void rows.push(...(await fleetRows())),
  dashboard: async () => void rows.push(...(await dashboardRows(rounds))),
  workspace: async () => void rows.push(...(await workspaceRows(rounds))),
  bytes: () =>
    withServer(async (harness) => {
      const read = await callerBytes(harness);
      rows.push(...read.rows);
      bytes = read.bytes;
    }),
  parallel: () =>
    withServer(async (harness, place) => {
      const size = { sessions: 10, turns: 20 };
      rows.push(await parallelRow(Math.min(2, rounds), harness, place, size));
    }),
};

/** A server with its own home and model, and the same place for the bare SDK. */
async function withServer(measure: (harness: Harness, place: Place) => Promise<void>): Promise<void> {
  const harness = await openHarness();
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: harness.home,
    TMPDIR: path.join(path.dirname(harness.home), 'tmp'),
    XDG_STATE_HOME: harness.stateDir,
    CLAUDE_CONFIG_DIR: harness.configDir,
    ...harness.model.env(),
  };
  try {
    await measure(harness, { cwd: harness.project, env });
  } finally {
    await harness.close();
  }
}

async function measureAll(): Promise<Results> {
  for (const [name, measure] of Object.entries(parts)) {
    if (wanted && !wanted.includes(name)) continue;
    console.error(`measuring ${name} …`);
    try {
      await measure();
    } catch (error) {
      // One part that fails must not cost us the others' figures, and must not look like a success.
      console.error(`${name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      rows.push({ what: name, target: '', measured: 'failed', reached: false, numbers: {} });
    }
  }
  return {
    date: new Date().toISOString(),
    machine,
    versions: await versions(),
    rounds,
    rows,
    bytes,
    ...(peers && { peers }),
  };
}

async function versions(): Promise<Record<string, string>> {
  const read = async (file: string): Promise<string> =>
    (JSON.parse(await readFile(path.join(root, file), 'utf8')) as { version: string }).version;
  return {
    'claude-code-mcp': await read('package.json'),
    node: process.versions.node,
    '@anthropic-ai/claude-agent-sdk': await read('node_modules/@anthropic-ai/claude-agent-sdk/package.json'),
  };
}

async function report(): Promise<void> {
  const file = path.join(root, 'bench', 'results.json');
  const results = options.check ? (JSON.parse(await readFile(file, 'utf8')) as Results) : await measureAll();
  console.log(benchmarkTable(results));
  if (Object.keys(results.bytes).length > 0) console.log(`\n${bytesTable(results)}`);
  if (results.peers) console.log(`\n${peersTable(results.peers)}`);
  if (wanted || options.check) return;
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
}

async function reportAgainst(theirs: string): Promise<void> {
  const compared = await compareBuilds({ ours: root, theirs: path.resolve(theirs) }, wanted ?? SHARED_PARTS, rounds);
  console.log(comparisonTable(compared));
  if (compared.some(({ ratio }) => ratio > MOST)) process.exitCode = 1;
}

const wanted = options.only?.split(',').map((word) => word.trim());
await (options.against === undefined ? report() : reportAgainst(options.against));

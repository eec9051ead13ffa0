/**
 * `npm run bench`: measures what the product promises and, in the same run, what it is compared with, and writes
 * bench/results.json. Options: --peers (other servers too), --before <directory of an earlier build> (what its callers
 * had to read), --rounds <n>, --only <parts, separated by commas> (writes nothing, or with --keep the rows of these parts),
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
import type { Place } from './bench/bare-sdk.ts';
import type { Peers } from './bench/peers.ts';
import type { CallerServer, Machine, Peer, Results, Row } from './bench/row.ts';
import { benchmarkTable, bytesTable, callerTable, peersTable } from './bench/table.ts';

const { values: options } = parseArgs({
  options: {
    peers: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    only: { type: 'string' },
    check: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    before: { type: 'string' },
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

/** Parts that can be measured in every build so far. */
const SHARED_PARTS = ['start', 'sessions', 'prewarm', 'poll', 'events', 'memory', 'listing', 'caller', 'parallel'];

const rows: Row[] = [];
let bytes: Record<string, number> = {};
let peers: Peer[] | undefined;
let caller: CallerServer[] | undefined;

/** Each part loads its modules when it runs, so that they do not affect what other parts measure. */
const parts: Readonly<Record<string, () => Promise<void>>> = {
  start: async () => {
    const { startRows } = await import('./bench/start-rows.ts');
    const { installPeers } = await import('./bench/peers.ts');
    const home = await createHome();
    const installed: Peers | undefined = options.peers ? await installPeers() : undefined;
    try {
      for (const problem of installed?.problems ?? []) console.error(`not measured: ${problem}`);
      const started = await startRows(rounds * 3, home, installed?.commands ?? []);
      add(started.rows);
      if (installed) peers = started.peers;
    } finally {
      await installed?.[Symbol.asyncDispose]();
      await home.remove();
    }
  },
  sessions: async () => {
    const { sessionRows } = await import('./bench/session-rows.ts');
    await withServer(async (harness, place) => add(await sessionRows(rounds, harness, place)));
  },
  hub: async () => add(await (await import('./bench/hub-rows.ts')).hubRows(rounds)),
  keeper: async () => add(await (await import('./bench/keeper-rows.ts')).keeperRows(rounds)),
  load: async () => add(await (await import('./bench/load-rows.ts')).loadRows(rounds)),
  prewarm: async () => add([await (await import('./bench/prewarm-row.ts')).prewarmRow(rounds)]),
  poll: async () => add([await (await import('./bench/engine-rows.ts')).pollRow()]),
  events: async () => add([await (await import('./bench/engine-rows.ts')).throughputRow()]),
  memory: async () => add(await (await import('./bench/memory-row.ts')).memoryRows()),
  rules: async () => add(await (await import('./bench/rule-rows.ts')).ruleRows(rounds)),
  store: async () => add(await (await import('./bench/store-rows.ts')).storeRows()),
  listing: async () => add([await (await import('./bench/listing-row.ts')).listingRow(rounds)]),
  fleet: async () => add(await (await import('./bench/fleet-rows.ts')).fleetRows()),
  dashboard: async () => add(await (await import('./bench/dashboard-rows.ts')).dashboardRows(rounds)),
  workspace: async () => add(await (await import('./bench/workspace-rows.ts')).workspaceRows(rounds)),
  caller: async () => {
    const { callerFigures } = await import('./bench/caller-rows.ts');
    const figures = await callerFigures({ before: options.before, withPeers: options.peers });
    add(figures.rows);
    ({ bytes, servers: caller } = figures);
  },
  parallel: () =>
    withServer(async (harness, place) => {
      const { parallelRow } = await import('./bench/session-rows.ts');
      const size = { sessions: 10, turns: 20 };
      add([await parallelRow(Math.min(2, rounds), harness, place, size)]);
    }),
};

function add(measured: readonly Row[]): void {
  rows.push(...measured);
}

/** A server with its own home and model, and the same directory and environment for the bare SDK. */
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
      // A failing part must neither lose the others' figures nor look like a success.
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
    ...(caller && { caller }),
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
  const readLast = async (): Promise<Results> => JSON.parse(await readFile(file, 'utf8')) as Results;
  const results = options.check ? await readLast() : await measureAll();
  console.log(benchmarkTable(results));
  if (Object.keys(results.bytes).length > 0) console.log(`\n${bytesTable(results)}`);
  if (results.peers) console.log(`\n${peersTable(results.peers)}`);
  if (results.caller) console.log(`\n${callerTable(results.caller)}`);
  if ((wanted && !options.keep) || options.check) return;
  const kept = wanted ? joined(await readLast(), results) : results;
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(kept, null, 2)}\n`);
}

/** The last results with what was measured again; the date and the machine stay those of the complete run. */
function joined(last: Results, again: Results): Results {
  const { rows: measured, bytes: read, peers: other, caller: jobs } = again;
  const isNew = ({ what }: Row): boolean => !last.rows.some((row) => row.what === what);
  const position = last.rows.findLastIndex(({ what }) => measured.some((row) => row.what === what));
  const updated = last.rows.map((row) => measured.find(({ what }) => what === row.what) ?? row);
  return {
    ...last,
    rows: updated.toSpliced(position + 1, 0, ...measured.filter(isNew)),
    ...(Object.keys(read).length > 0 && { bytes: read }),
    ...(other && { peers: other }),
    ...(jobs && { caller: jobs }),
  };
}

async function reportAgainst(theirs: string): Promise<void> {
  const { compareBuilds, comparisonTable, MAX_RATIO } = await import('./bench/against.ts');
  const compared = await compareBuilds({ ours: root, theirs: path.resolve(theirs) }, wanted ?? SHARED_PARTS, rounds);
  console.log(comparisonTable(compared));
  if (compared.some(({ ratio }) => ratio > MAX_RATIO)) process.exitCode = 1;
}

const wanted = options.only?.split(',').map((word) => word.trim());
const unknown = wanted?.filter((name) => !Object.hasOwn(parts, name)) ?? [];
if (unknown.length > 0) {
  console.error(`--only ${unknown.join(',')}: no such part; there are ${Object.keys(parts).join(', ')}.`);
  process.exit(2);
}
await (options.against === undefined ? report() : reportAgainst(options.against));

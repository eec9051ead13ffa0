/** The figures of the last `npm run bench`, if they were kept. */

import { existsSync, readFileSync } from 'node:fs';
import type { Results } from '../bench/row.ts';
import { callerCells } from '../bench/table.ts';
import { markdownTable } from './markdown-table.ts';

export function benchPart(file: string): string {
  const results = readResults(file);
  if (!results) return 'No figures yet: `npm run bench` measures them on your machine.\n';
  const { date, machine, rounds, rows } = results;
  const table = markdownTable(
    ['What', 'Promised', 'Measured'],
    rows.map(({ what, target, measured }) => [what, target, measured]),
  );
  const missed = rows.filter(({ reached }) => reached === false).map(({ what }) => what);
  const summary = missed.length === 0 ? 'Every target is met.' : `Missed: ${missed.join('; ')}.`;
  return `${summary}\n\n${table}\n${date.slice(0, 10)}, ${machine.cpu}, ${machine.cores} cores, ${machine.platform}; medians of ${rounds} rounds, \`npm run bench\`.\n`;
}

const FLEET_ROWS = [
  'memory of a parked session',
  'a poll at a hub that does not run the session, against one that does',
  'a reply through another hub',
  '100,000 sessions and 1,000 open requests in Postgres: list and inbox',
];

/** What the estimates for many users start from. */
export function fleetPart(file: string): string {
  const rows = readResults(file)?.rows ?? [];
  const chosen = FLEET_ROWS.map((what) => {
    const row = rows.find((candidate) => candidate.what === what);
    if (!row) throw new Error(`${file} has no row for: ${what}`);
    return [what, row.measured];
  });
  return markdownTable(['', 'Measured'], chosen);
}

/** Other servers, measured in the same run. */
export function peersPart(file: string): string {
  const peers = readResults(file)?.peers;
  if (!peers) return 'No figures yet: `npm run bench -- --peers` measures them on your machine.\n';
  return markdownTable(
    ['', 'Start to `tools/list`', '`tools/list`', ''],
    peers.map(({ name, startMs, listBytes, note }) => [
      name,
      startMs === undefined ? '' : `${Math.round(startMs)} ms`,
      listBytes === undefined ? '' : `${listBytes.toLocaleString('en-US')} bytes`,
      note,
    ]),
  );
}

/** What the jobs of a caller cost, with this build, the one before and other servers. */
export function callerPart(file: string): string {
  const servers = readResults(file)?.caller;
  if (!servers) return 'No figures yet: `npm run bench -- --only caller --peers` measures them on your machine.\n';
  const { heads, lines } = callerCells(servers);
  return markdownTable(heads, lines);
}

function readResults(file: string): Results | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : undefined;
}

/** Measures this build and another one in turn, each with its own benchmark, which prints its rows as JSON. */

import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { build } from 'tsdown';
import { interleaved, median, ratio, round } from './measure.ts';
import type { Row } from './row.ts';

export const MAX_RATIO = 1.05;
/** Rounds of the benchmark itself, within one round of one side. */
const ROUNDS_EACH = 3;
/** The numbers of a row that should be small, and the one that should be large. */
const COSTS = ['ms', 'lastTenMs', 's', 'kb', 'rssMb', 'bytes', 'calls'];
const GAINS = ['perSecond'];

/** What parts were called in earlier builds. */
const FORMER_NAMES: Readonly<Record<string, string>> = { caller: 'bytes' };

/** Runs in the build's own directory, by its own rules. */
const BUILD =
  "import { buildIfStale as build } from './scripts/build-if-stale.mjs'; await build('dist'); await build('scripts');";

export interface Comparison {
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  readonly theirs: number;
  /** Cost ratio: above 1, ours is worse. */
  readonly ratio: number;
}

export async function compareBuilds(
  { ours, theirs }: { readonly ours: string; readonly theirs: string },
  parts: readonly string[],
  rounds: number,
): Promise<Comparison[]> {
  const programs = { ours: await rowsProgram(ours), theirs: await rowsProgram(theirs) };
  const compared: Comparison[] = [];
  for (const part of parts) {
    console.error(`comparing ${part} …`);
    const seen: Record<'ours' | 'theirs', Row[][]> = { ours: [], theirs: [] };
    const side = (name: 'ours' | 'theirs') => async (): Promise<number> =>
      seen[name].push(await rowsOf(programs[name], part));
    await interleaved(rounds, { ours: side('ours'), theirs: side('theirs') });
    compared.push(...comparisons(seen.ours, seen.theirs));
  }
  return compared;
}

/** A build's benchmark with another table. Placed with the other scripts, since it finds its files from there. */
async function rowsProgram(directory: string): Promise<string> {
  const args = ['--input-type=module', '-e', BUILD, path.join('scripts', 'run.mjs')];
  await promisify(execFile)(process.execPath, args, { cwd: directory });
  await build({
    config: false,
    cwd: directory,
    entry: { 'bench-rows': 'scripts/bench.ts' },
    platform: 'node',
    format: 'esm',
    outDir: '.build',
    outputOptions: { entryFileNames: '[name].mjs', chunkFileNames: 'rows-[name].mjs' },
    clean: false,
    dts: false,
    deps: { skipNodeModulesBundle: true },
    logLevel: 'error',
    plugins: [
      {
        name: 'rows-as-json',
        load: (id: string) =>
          id.endsWith(path.join('scripts', 'bench', 'table.ts'))
            ? 'export const benchmarkTable = ({ rows }) => JSON.stringify(rows); export const bytesTable = () => ""; export const peersTable = bytesTable; export const callerTable = bytesTable;'
            : null,
      },
    ],
  });
  return path.join(directory, '.build', 'bench-rows.mjs');
}

async function rowsOf(program: string, part: string): Promise<Row[]> {
  const run = (name: string): Promise<{ stdout: string }> =>
    promisify(execFile)(process.execPath, [program, '--only', name, '--rounds', String(ROUNDS_EACH)], {
      maxBuffer: 2 ** 26,
    });
  const formerName = FORMER_NAMES[part];
  const { stdout } = await (formerName === undefined ? run(part) : run(part).catch(() => run(formerName)));
  return JSON.parse(stdout.split('\n')[0] ?? '[]') as Row[];
}

/** Compares the rows that both have, by name. */
function comparisons(ours: readonly Row[][], theirs: readonly Row[][]): Comparison[] {
  const numbers = (rounds: readonly Row[][], what: string, unit: string): number[] =>
    rounds.map((rows) => rows.find((row) => row.what === what)?.numbers[unit] ?? Number.NaN);
  return (ours[0] ?? []).flatMap(({ what }) =>
    [...COSTS, ...GAINS].flatMap((unit) => {
      const [our, their] = [numbers(ours, what, unit), numbers(theirs, what, unit)];
      if ([...our, ...their].some(Number.isNaN)) return [];
      const cost = GAINS.includes(unit) ? ratio(their, our) : ratio(our, their);
      return [{ what, unit, ours: median(our), theirs: median(their), ratio: round(cost, 3) }];
    }),
  );
}

export function comparisonTable(compared: readonly Comparison[]): string {
  const lines = compared.map(
    ({ what, unit, ours, theirs, ratio: cost }) =>
      `| ${what} | ${unit} | ${round(ours, 3)} | ${round(theirs, 3)} | ${cost.toFixed(2)} × | ${cost <= MAX_RATIO ? 'yes' : '**no**'} |`,
  );
  return [
    `| what | | this build | the other | cost | at most ${MAX_RATIO} × |`,
    '| --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}

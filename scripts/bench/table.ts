import type { CallerServer, Peer, Results } from './row.ts';

/** The results as Markdown, for the terminal. */
export function benchmarkTable({ rows, machine, versions, date, rounds }: Results): string {
  const lines = rows.map(
    ({ what, target, measured, reached }) =>
      `| ${what} | ${target} | ${measured} | ${reached === undefined ? '' : reached ? 'yes' : '**no**'} |`,
  );
  const node = versions['node'] ?? '?';
  const sdk = versions['@anthropic-ai/claude-agent-sdk'] ?? '?';
  return [
    '| what | must reach | measured | reached |',
    '| --- | --- | --- | --- |',
    ...lines,
    '',
    `${date.slice(0, 10)}, ${machine.cpu}, ${machine.cores} cores (load ${machine.load} at the start), ${machine.memoryGb} GB, ${machine.platform}, Node ${node}, Agent SDK ${sdk}; medians of ${rounds} interleaved rounds.`,
  ].join('\n');
}

export function bytesTable({ bytes }: Results): string {
  return ['| what a caller’s model reads | bytes |', '| --- | --- |']
    .concat(Object.entries(bytes).map(([what, size]) => `| ${what} | ${size.toLocaleString('en-US')} |`))
    .join('\n');
}

export function peersTable(peers: readonly Peer[]): string {
  const shown = (value: number | undefined, unit: string): string =>
    value === undefined ? '' : `${value.toLocaleString('en-US')}${unit}`;
  return ['| server | start to tools/list | tools/list | |', '| --- | --- | --- | --- |']
    .concat(
      peers.map(
        ({ name, startMs, listBytes, note }) =>
          `| ${name} | ${shown(startMs, ' ms')} | ${shown(listBytes, ' bytes')} | ${note} |`,
      ),
    )
    .join('\n');
}

/** One line per server: calls and bytes for each job. */
export function callerTable(servers: readonly CallerServer[]): string {
  const { heads, lines } = callerCells(servers);
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(heads), `|${' --- |'.repeat(heads.length)}`, ...lines.map(line)].join('\n');
}

export function callerCells(servers: readonly CallerServer[]): { heads: string[]; lines: string[][] } {
  const jobs = servers[0]?.jobs.map(({ job }) => job) ?? [];
  return {
    heads: ['calls, bytes', ...jobs, 'decisions of the caller', 'wanted files made', 'refused download made'],
    lines: servers.map(({ name, jobs: costs, decisions, made, ranRefused }) => [
      name,
      ...costs.map(({ calls, bytes, isDone }) =>
        isDone ? `${String(calls)}, ${bytes.toLocaleString('en-US')}` : 'not done',
      ),
      String(decisions),
      made,
      ranRefused ? '**yes**' : 'no',
    ]),
  };
}

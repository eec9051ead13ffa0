import type { Peer, Results } from './row.ts';

/** The results as Markdown, for the README and for the terminal. */
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

/** The figures of the last `npm run bench`, if they were kept. */

import { existsSync, readFileSync } from 'node:fs';
import { markdownTable } from './markdown-table.ts';

interface Results {
  readonly date: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly platform: string };
  readonly rounds: number;
  readonly rows: readonly { readonly what: string; readonly target: string; readonly measured: string }[];
}

export function benchPart(file: string): string {
  if (!existsSync(file)) return 'No figures yet: `npm run bench` measures them on your machine.\n';
  const { date, machine, rounds, rows } = JSON.parse(readFileSync(file, 'utf8')) as Results;
  const table = markdownTable(
    ['What', 'Promised', 'Measured'],
    rows.map(({ what, target, measured }) => [what, target, measured]),
  );
  return `${table}\n${date.slice(0, 10)}, ${machine.cpu}, ${machine.cores} cores, ${machine.platform}; medians of ${rounds} rounds, \`npm run bench\`.\n`;
}

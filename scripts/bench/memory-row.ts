import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { besideScript, round } from './measure.ts';
import type { Row } from './row.ts';

interface Report {
  readonly rss: number;
  readonly sessions: number;
  readonly eventsPerSession: number;
  readonly bytesPerParkedSession: number;
  readonly heapEarly: number;
  readonly heapLate: number;
  readonly turns: number;
}

const MB = 1024 * 1024;
/** Allowed growth of a flat heap: filled caches, compiled code. */
const FLAT_MB = 4;

export async function memoryRows(): Promise<Row[]> {
  const script = besideScript('bench-memory.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script]);
  const report = JSON.parse(stdout) as Report;
  const rssMb = report.rss / MB;
  const kbEach = report.bytesPerParkedSession / 1000;
  const grownMb = (report.heapLate - report.heapEarly) / MB;
  return [
    {
      what: `memory after ${report.sessions.toLocaleString('en-US')} sessions of ${report.eventsPerSession} events`,
      target: 'under 120 MB',
      measured: `${rssMb.toFixed(1)} MB resident`,
      reached: rssMb < 120,
      numbers: { rssMb: round(rssMb, 1) },
    },
    {
      what: 'memory of a parked session',
      target: 'under 100 kB',
      measured: `${round(kbEach)} kB`,
      reached: kbEach < 100,
      numbers: { kb: round(kbEach, 1) },
    },
    {
      what: `memory over ${report.turns.toLocaleString('en-US')} turns of one session`,
      target: 'flat',
      measured: `${grownMb >= 0 ? '+' : ''}${grownMb.toFixed(1)} MB from turn ${report.turns / 5} on`,
      reached: grownMb < FLAT_MB,
      numbers: { grownMb: round(grownMb, 2) },
    },
  ];
}

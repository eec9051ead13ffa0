import type { Settings } from '../../config/load-settings.ts';
import { printableLines } from '../../text/invisible.ts';

const RANK = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 } as const;

export type LogLevel = Exclude<keyof typeof RANK, 'silent'>;
export type Log = (level: LogLevel, line: string) => void;

export function createLog(threshold: Settings['logLevel'], write: (text: string) => void): Log {
  return (level, line) => {
    if (RANK[level] >= RANK[threshold]) write(`claude-code-mcp ${level}: ${printableLines(line)}\n`);
  };
}

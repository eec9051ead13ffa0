/** Faults that fail every test, whatever the test itself asserts. */

import type { ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import type { MarkedProcess } from './marked-processes.ts';

export interface Tolerance {
  /** The model may get requests that no script expects. */
  readonly unexpectedRequests?: boolean;
  /** stderr may report a crash. */
  readonly stderr?: boolean;
}

const SIGNS_OF_A_CRASH = [/unhandled/i, /uncaught/i, /^Node\.js v\d+/m, /^\s+at .+:\d+:\d+\)?$/m];

export function leftoverFault(left: readonly MarkedProcess[], withinMs: number): string[] {
  if (left.length === 0) return [];
  const lines = left.map(({ pid, command }) => `  ${pid} ${command}`);
  return [`Still alive ${withinMs} ms after the server's stdin ended (killed now):\n${lines.join('\n')}`];
}

export function stdoutFault(foreignOutput: readonly string[]): string[] {
  if (foreignOutput.length === 0) return [];
  const lines = foreignOutput.map((line) => `  ${JSON.stringify(line)}`);
  return [`stdout belongs to the protocol, but the server wrote:\n${lines.join('\n')}`];
}

export function stderrFault(stderr: string): string[] {
  return SIGNS_OF_A_CRASH.some((sign) => sign.test(stderr)) ? [`stderr reports a crash:\n${stderr}`] : [];
}

export function modelFault(model: ScriptedModel): string[] {
  try {
    model.assertAllExpected();
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

import os from 'node:os';
import type { Host } from './host.ts';

/** The machine and process we run in. */
export function thisHost(): Host {
  return { env: process.env, cwd: process.cwd(), homedir: os.homedir(), platform: process.platform };
}

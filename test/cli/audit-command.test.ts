import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { runCommand } from './run-command.ts';

let place: IsolatedHome;
beforeEach(async () => {
  place = await createHome();
});
afterEach(() => place.remove());

test('reads the log that the settings name', async () => {
  const entry = {
    time: '2026-01-02T03:04:05.000Z',
    kind: 'tool_call',
    session: 'abc',
    who: 'caller',
    what: 'claude_code',
  };
  const log = path.join(place.home, 'logs', 'audit.jsonl');
  await mkdir(path.dirname(log));
  await writeFile(log, `${JSON.stringify(entry)}\n`);
  const { code, stdout } = await runCommand(['audit', '--json', '--audit-log', log], { env: place.env() });
  expect(stdout).toContain('"what":"claude_code"');
  expect(code).toBe(0);
});

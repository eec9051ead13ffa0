import { randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openHarness, type Harness } from '../../test/harness/open-harness.ts';
import { median } from './measure.ts';
import type { Row } from './row.ts';

const SESSIONS = 5_000;
const BATCH = 100;

/** How long a user with years of sessions waits for the newest fifty. */
export async function listingRow(rounds: number): Promise<Row> {
  const harness = await openHarness({ toolset: 'explicit' });
  try {
    await fillDisk(harness);
    const times: number[] = [];
    for (let round = 0; round < rounds + 1; round++) {
      const begin = performance.now();
      const listed = (await harness.ok('claude_list_sessions', {})) as { sessions: unknown[] };
      times.push(performance.now() - begin);
      if (listed.sessions.length !== 50) throw new Error('the list is not complete');
    }
    const [first = 0, ...others] = times;
    const ms = median(others);
    return {
      what: `claude_list_sessions among ${SESSIONS.toLocaleString('en')} sessions on disk`,
      target: 'under a second',
      measured: `${ms.toFixed(0)} ms, the first time ${first.toFixed(0)} ms`,
      reached: ms < 1_000,
      numbers: { ms, firstMs: first, sessions: SESSIONS },
    };
  } finally {
    await harness.close();
  }
}

/** Copies of one real transcript, each with its own id. */
async function fillDisk(harness: Harness): Promise<void> {
  harness.model.on('one of many').reply('done');
  const created = (await harness.ok('claude_create_session', {
    prompt: 'one of many',
    workingDirectory: harness.project,
  })) as { sessionId: string };
  const { sessionId } = created;
  await harness.waitUntilRest(sessionId);
  const projects = path.join(harness.configDir, 'projects');
  const [project = ''] = await readdir(projects);
  const text = await readFile(path.join(projects, project, `${sessionId}.jsonl`), 'utf8');
  for (let written = 0; written < SESSIONS; written += BATCH) {
    await Promise.all(
      Array.from({ length: BATCH }, async () => {
        const id = randomUUID();
        await writeFile(path.join(projects, project, `${id}.jsonl`), text.replaceAll(sessionId, id));
      }),
    );
  }
}

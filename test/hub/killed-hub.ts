/**
 * A hub that plays a short scenario on a store in a file, prints a line for everything a client would have been told,
 * and kills itself at one of its writes: `node killed-hub.mjs <file> <write> <before|after>`.
 */

import { writeSync } from 'node:fs';
import process from 'node:process';
import type { Session } from '../../src/engine/session/session.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { eventually } from '../harness/eventually.ts';
import { openTestHub } from './test-hub.ts';

/** Something reported to a client, after it was stored. */
export type Report =
  | { readonly kind: 'session'; readonly id: string; readonly nextCursor: number; readonly state: string }
  | { readonly kind: 'request'; readonly id: string; readonly session: string }
  | { readonly kind: 'decision'; readonly id: string; readonly decision: string }
  | { readonly kind: 'result'; readonly session: string; readonly text: string }
  | { readonly kind: 'writes'; readonly count: number };

const [file = '', write = '0', phase = 'none'] = process.argv.slice(2);
const killAt = Number(write);

let count = 0;
const store = await openSqliteStore({ file, warn: (line) => process.stderr.write(`${line}\n`) });
const hub = await openTestHub(store, {
  watch: (now) => {
    if (now === 'before') count++;
    if (count === killAt && now === phase) process.kill(process.pid, 'SIGKILL');
  },
});

async function report(reported: Report): Promise<void> {
  await hub.engine.stored();
  writeSync(1, `${JSON.stringify(reported)}\n`);
}

const reportSession = ({ id, conversation: { log }, state }: Session): Promise<void> =>
  report({ kind: 'session', id, nextCursor: log.nextId, state });

/** A request is open once the state of what it is about is known. */
const isOpen = (session: Session, id: string): Promise<unknown> =>
  eventually(() => session.findRequest(id), { what: `request ${id} is open` });

const first = await hub.engine.start({ prompt: 'the first task', options: {} });
await reportSession(first);
const agent = await hub.agent();
const asked = agent.ask('r1', 'Bash', { command: 'npm test' });
await isOpen(first, 'r1');
await report({ kind: 'request', id: 'r1', session: first.id });
hub.engine.respond(first.id, 'r1', { decision: 'allow' });
await asked;
await report({ kind: 'decision', id: 'r1', decision: 'allow' });
agent.answer('The first task is done.');
await report({ kind: 'result', session: first.id, text: 'The first task is done.' });
await reportSession(first);
await hub.engine.reply({ sessionId: first.id, prompt: 'and now this', disk: { kind: 'open', options: {} } });
await reportSession(first);
agent.answer('That is done too.');
await report({ kind: 'result', session: first.id, text: 'That is done too.' });

const second = await hub.engine.start({ prompt: 'the second task', options: {} });
const other = hub.agents[1];
void other?.ask('r2', 'Bash', { command: 'npm run build' });
void other?.ask('r3', 'Bash', { command: 'npm run lint' });
await isOpen(second, 'r2');
await isOpen(second, 'r3');
await report({ kind: 'request', id: 'r2', session: second.id });
await report({ kind: 'request', id: 'r3', session: second.id });
other?.die();
hub.engine.respond(second.id, 'r3', { decision: 'deny', message: 'not now' });
await report({ kind: 'decision', id: 'r3', decision: 'deny' });
await reportSession(second);
writeSync(1, `${JSON.stringify({ kind: 'writes', count } satisfies Report)}\n`);
process.exit(0);

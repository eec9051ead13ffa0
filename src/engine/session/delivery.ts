/** How messages reach Claude Code: through the process that a session has, or through a new one. */

import { randomUUID } from 'node:crypto';
import type { Message } from '../conversation/outbox.ts';
import { handoverText } from '../requests/decided-away.ts';
import type { Session } from './session.ts';

/** Resolves when a live process has it, or a new one has reported its start. */
export async function sendPrompt(session: Session, text: string): Promise<void> {
  session.mobility.checkOwned();
  const { conversation, process } = session;
  const { lines } = conversation.decidedAway;
  const preamble = lines.length === 0 ? '' : `${handoverText(lines)}\n\n`;
  const own = preamble === '' ? {} : { preamble: preamble.length };
  const message = { id: randomUUID(), text: preamble + text, ...own };
  const isFirst = session.state === 'starting';
  conversation.say(message);
  if (isFirst) session.work.turnBegins();
  try {
    await process.settled();
    // Claude Code must not work on something that a killed hub would not know of: it would be sent again.
    await session.services.stored?.();
    if (process.live) process.send(message);
    else await session.launch(message, isFirst ? 'first' : 'again');
  } catch (error) {
    conversation.undoSend(message, error);
    throw error;
  }
  handedOver(session);
}

/** A note on a call that was just allowed: Claude Code queues it behind the call and reads it with its result. */
export async function sendNote({ conversation, process, services }: Session, text: string): Promise<void> {
  const message = { id: randomUUID(), text, preamble: text.length };
  conversation.note(message);
  try {
    await services.stored?.();
    process.send(message);
  } catch (error) {
    conversation.undoSend(message, error);
    throw error;
  }
}

/** Takes back a queued message, or puts other words in its place, at the end of the queue. False if it is too late. */
export async function withdraw(session: Session, messageId: string, replacement?: string): Promise<boolean> {
  session.mobility.checkOwned();
  const { conversation, process, notices } = session;
  await process.startSettled();
  await process.closed();
  if (!conversation.outbox.isQueued(messageId)) return false;
  if (process.live && !(await process.live.withdraw(messageId))) return false;
  conversation.outbox.takeBack(messageId);
  if (replacement !== undefined && process.live) await sendPrompt(session, replacement);
  // A message must not start a process while requests are open: it goes along with what is decided.
  else if (replacement !== undefined) conversation.say({ id: randomUUID(), text: replacement });
  notices.tell({ kind: 'changed' });
  return true;
}

/** Tells a new process what was decided while the session had none. */
export async function handOver(session: Session): Promise<void> {
  session.mobility.checkOwned();
  const { conversation } = session;
  const { decidedAway, outbox } = conversation;
  if ((session.state !== 'running' && !session.atRest) || decidedAway.lines.length === 0) return;
  const undelivered = outbox.takeUndelivered();
  const preamble = handoverText(decidedAway.lines);
  const text = [preamble, ...undelivered].join('\n\n');
  const message = { id: randomUUID(), text, preamble: preamble.length };
  conversation.say(message);
  try {
    await session.process.settled();
    await session.launch(message, 'again');
  } catch (error) {
    conversation.undoSend(message, error);
    for (const text of undelivered) outbox.add({ id: randomUUID(), text });
    throw error;
  }
  handedOver(session);
}

/** The session is at rest, and the decisions go along with the next message. */
export function handoverFailed(session: Session, error: unknown): void {
  if (!session.atRest) session.conversation.startFailed(error, false);
}

function handedOver({ conversation, notices }: Session): void {
  conversation.decidedAway.clear();
  notices.tell({ kind: 'changed' });
}

/** A process that died at rest may be noticed only on the next write: what it never read goes to the next one. */
export function redeliver(session: Session, [first, ...others]: readonly Message[]): void {
  if (!first) return;
  session.launch(first, 'redelivery').then(
    () => {
      for (const message of others) session.process.send(message);
    },
    // The conversation has ended with it.
    () => undefined,
  );
}

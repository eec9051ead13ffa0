import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ProcessOwner } from '../platform/process-owner.ts';
import { Keeper } from './keeper.ts';
import { KeptProcesses } from './kept-processes.ts';
import { FrameReader, keeperFiles, messageFrame, proofOf, type FromKeeper } from './protocol.ts';

const STORE = 'store';

it.runIf(process.platform === 'linux')(
  'a hub that arrives while a process of the last one is being started learns of it and can read it',
  async () => {
    const hub = await keeperForHubs();
    // Called last when a hub has proved what it is.
    const proved = vi.spyOn(ProcessOwner.prototype, 'sessionOfGroup');
    const prepare = Object.getOwnPropertyDescriptor(ProcessOwner.prototype, 'prepare')!
      .value as ProcessOwner['prepare'];
    let startNow = (): void => undefined;
    const held = new Promise<void>((resolve) => (startNow = resolve));
    vi.spyOn(ProcessOwner.prototype, 'prepare').mockImplementation(async function (this: ProcessOwner) {
      await held;
      return prepare.call(this);
    });

    const first = hub();
    await first.open(STORE);
    const run = randomUUID();
    const { start } = await first.prepare(run, { session: 'session' });
    start({ command: 'cat', args: [], env: {} }).stdin.write('{"said":"before"}\n');
    first.leave();
    await first.release();

    proved.mockClear();
    const second = hub();
    const opened = second.open(STORE);
    await vi.waitFor(() => expect(proved).toHaveBeenCalled(), { timeout: 30_000 });
    startNow();
    await opened;
    expect(second.offers).toMatchObject([{ run, label: { session: 'session' } }]);
    const lent = vi.spyOn(ProcessOwner.prototype, 'lend');
    const said: string[] = [];
    // As a session that another hub may take over lends it before it is read.
    second.lend(run);
    second.take(second.offers[0]!, 0).stdout.on('data', (chunk: Buffer) => said.push(chunk.toString()));
    await vi.waitFor(() => expect(said.join('')).toContain('"said":"before"'), { timeout: 30_000 });
    expect(lent).toHaveBeenCalledWith(run);
    second.leave();
    await second.release();

    const third = hub();
    await third.open(STORE);
    const [offer] = third.offers;
    await third.release();
    expect(() => third.take(offer!, 0)).toThrow('the process is gone');
  },
);

it.runIf(process.platform === 'linux')(
  'a peer that cannot be examined is turned away, and the keeper goes on',
  async () => {
    const hub = await keeperForHubs();
    const { stateDir, socket } = hub;
    const { secret, claim } = keeperFiles(stateDir);
    vi.spyOn(ProcessOwner.prototype, 'sessionOfGroup').mockImplementationOnce(() => {
      throw new Error('it cannot be read');
    });
    const peer = connect(socket);
    const closed = once(peer, 'close');
    const reader = new FrameReader<FromKeeper>((frame) => {
      if (frame.kind !== 'message' || frame.message.t !== 'hello') return;
      const { nonce } = frame.message;
      const held = openSync(claim(nonce), 'wx');
      onTestFinished(() => closeSync(held));
      const proof = proofOf(readFileSync(secret, 'utf8').trim(), nonce);
      peer.write(messageFrame({ t: 'prove', pid: process.pid, proof }));
    });
    peer.on('data', (chunk: Buffer) => reader.take(chunk));
    await closed;
    const next = hub();
    await next.open(STORE);
    next.leave();
    await next.release();
  },
);

/** A keeper in this process, which also holds the lock of the hub, and hubs for it. */
async function keeperForHubs(): Promise<
  (() => KeptProcesses) & { readonly stateDir: string; readonly socket: string }
> {
  const stateDir = await realpath(await mkdtemp(path.join(os.tmpdir(), 'keeper-')));
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
  const socket = path.join(stateDir, 'kept.sock');
  const { directory } = keeperFiles(stateDir);
  await mkdir(directory);
  await writeFile(path.join(directory, 'instance.0.lock'), JSON.stringify({ pid: process.pid }));
  const keeper = new Keeper({ stateDir, socket });
  onTestFinished(async () => {
    await keeper.end();
    await vi.waitFor(() => expect(exit).toHaveBeenCalled(), { timeout: 30_000 });
    vi.restoreAllMocks();
    await rm(stateDir, { recursive: true, force: true });
  });
  await keeper.listen();
  const hub = (): KeptProcesses =>
    new KeptProcesses({
      stateDir,
      socket,
      program: 'never started',
      keepMs: 60_000,
      env: {},
      everStored: () => undefined,
      log: () => undefined,
    });
  return Object.assign(hub, { stateDir, socket });
}

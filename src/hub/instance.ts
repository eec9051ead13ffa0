import { randomBytes } from 'node:crypto';
import { access, constants, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { hubRecordFile, hubSecretFile, readHubRecord, type HubRecord } from '../config/hub-record.ts';
import { openOwnFile } from '../platform/own-file.ts';
import { naming } from '../errors/errors.ts';
import { lockSession } from '../transcripts/session-lock.ts';
import { readSecret } from '../transports/attach/protocol.ts';

/** Another hub has this state directory. */
export class HubRunsAlready extends Error {
  override readonly name = 'HubRunsAlready';
  readonly pid: number;
  readonly record: HubRecord | undefined;

  constructor(pid: number, record: HubRecord | undefined) {
    const where = record?.pid === pid ? ` at ${record.url}` : '';
    super(`a hub is already running (pid ${String(pid)})${where}`);
    this.pid = pid;
    this.record = record;
  }
}

/** This process as the only hub of a state directory. */
export interface HubInstance {
  /** What both ends of the socket must know. */
  readonly secret: string;
  /** From now on clients find the hub. */
  announce(record: HubRecord): Promise<void>;
  release(): Promise<void>;
}

export async function becomeHub(stateDir: string): Promise<HubInstance> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  // On a read-only file system, Node calls a directory that it cannot create missing.
  await access(stateDir, constants.W_OK);
  const lock = await lockSession(path.join(stateDir, 'hub'), 'instance').catch(naming(stateDir));
  if ('pid' in lock) throw new HubRunsAlready(lock.pid, readHubRecord(stateDir));
  try {
    // Left by a killed hub: it would send clients to a dead socket.
    await rm(hubRecordFile(stateDir), { force: true });
    const secret = await ownSecret(hubSecretFile(stateDir));
    return {
      secret,
      announce: (record) => writeRecord(hubRecordFile(stateDir), record),
      async release() {
        if (readHubRecord(stateDir)?.pid === process.pid) await rm(hubRecordFile(stateDir), { force: true });
        await lock.release();
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Survives restarts, so that reconnecting clients need no new one. */
async function ownSecret(file: string): Promise<string> {
  try {
    return await readSecret(file);
  } catch {
    await rm(file, { force: true });
    await write(file, `${randomBytes(32).toString('hex')}\n`);
    return readSecret(file);
  }
}

/** Never seen half-written. */
async function writeRecord(file: string, record: HubRecord): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  await write(draft, `${JSON.stringify(record, null, 2)}\n`);
  await rename(draft, file);
}

async function write(file: string, text: string): Promise<void> {
  const handle = await openOwnFile(file, 'create');
  try {
    await handle.writeFile(text).catch(naming(file));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

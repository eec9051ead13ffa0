import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir } from 'node:fs/promises';
import path from 'node:path';

/** Size of `sun_path` on macOS; Linux has four bytes more. */
const MAX_SOCKET_BYTES = 103;

export interface SocketHost {
  readonly stateDir: string;
  readonly temporaryDir: string;
  readonly platform: NodeJS.Platform;
  /** Undefined on Windows. */
  readonly uid: number | undefined;
}

/** Where the hub of this state directory listens: next to its files, or where the path is short enough. */
export function socketPath({ stateDir, temporaryDir, platform, uid }: SocketHost): string {
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 16);
  if (platform === 'win32') return `\\\\.\\pipe\\claude-code-mcp-${name}`;
  const beside = path.join(stateDir, 'hub', 'hub.sock');
  if (Buffer.byteLength(beside) <= MAX_SOCKET_BYTES) return beside;
  const directory = `claude-code-mcp-${String(uid ?? 0)}-${name}`;
  const short = path.join(temporaryDir, directory, 'hub.sock');
  return Buffer.byteLength(short) <= MAX_SOCKET_BYTES ? short : path.join('/tmp', directory, 'hub.sock');
}

/** A directory that only this user can enter. In a shared location someone else may have created it first. */
export async function makePrivateDirectory(socket: string, { platform, uid }: SocketHost): Promise<void> {
  if (platform === 'win32') return;
  const directory = path.dirname(socket);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const found = await lstat(directory);
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid))
    throw new Error(`${directory} belongs to another user`);
  if ((found.mode & 0o077) !== 0) await chmod(directory, 0o700);
}

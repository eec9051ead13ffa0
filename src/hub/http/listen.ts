import { readFile } from 'node:fs/promises';
import type { Settings } from '../../config/load-settings.ts';
import { isLoopback } from '../../config/setting-kinds.ts';
import { SettingsError } from '../../config/settings-error.ts';
import { messageOf } from '../../errors/errors.ts';

export interface Tls {
  readonly cert: string;
  readonly key: string;
}

/** What goes over the network is encrypted, or the hub does not start. */
export async function checkedTls({
  listen,
  tlsCert,
  tlsKey,
  behindProxy,
}: Pick<Settings, 'listen' | 'tlsCert' | 'tlsKey' | 'behindProxy'>): Promise<Tls | undefined> {
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new SettingsError('--tls-cert and --tls-key are only valid together.');
  if (tlsCert === undefined || tlsKey === undefined) {
    if (isLoopback(listen.host) || behindProxy !== undefined) return undefined;
    throw new SettingsError(
      `--listen ${listen.host} is not loopback: give --tls-cert and --tls-key, or --behind-proxy with the public URL.`,
    );
  }
  return { cert: await read('--tls-cert', tlsCert), key: await read('--tls-key', tlsKey) };
}

async function read(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new SettingsError(`${flag} cannot be read: ${messageOf(error)}`);
  }
}

import os from 'node:os';
import { claudeConfigDir, type Host } from '../../config/host.ts';
import type { UserPlace } from './protocol.ts';

/** What a client and its hub must have in common. */
export function placeOf({ stateDir }: { readonly stateDir: string }, host: Pick<Host, 'env' | 'homedir'>): UserPlace {
  const { username, uid } = os.userInfo();
  return { user: `${username} (${String(uid)})`, home: host.homedir, configDir: claudeConfigDir(host), stateDir };
}

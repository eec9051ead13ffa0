import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import os from 'node:os';
import { claudeConfigDir, type Host } from '../../config/host.ts';
import type { Settings } from '../../config/load-settings.ts';
import type { SettingKey } from '../../config/settings-table.ts';
import type { RuleSettings } from '../../engine/rules/rule-intersection.ts';
import { openOwnFile } from '../../platform/own-file.ts';
import type { HubRequestKind } from '../../schema/enums.ts';

/*
 * What goes over the hub's socket, one JSON object per line. Both ends prove that they know the secret; then the client
 * says what it wants. After an accepted `attach` the lines are those of MCP; after `terminal` the connection carries HTTP,
 * for `/api/v1`.
 *
 *   client  hello     { protocol, nonce }
 *   hub     greeting  { protocol, nonce, proof }   the client leaves if the number or the proof is wrong
 *   client  proof     { proof }
 *   client  request   { kind: 'attach' | 'terminal' | 'status' | 'sign-in' | 'stop' | 'leave' | 'restart' | 'store', pid, … }
 *   hub     reply     { ok: true, … } or { ok: false, why }
 *
 * For anything but `status` the client holds the file open that is named after the hub's nonce (`hubClaimFile`): no other
 * process can do that in its place, so on Linux the hub knows whether the client runs inside a session.
 */

/** Incremented whenever an older end would misunderstand a newer one. The first two lines never change. */
export const HUB_PROTOCOL = 1;

/** A line before the proof is short; one after it may contain a whole environment. */
export const MAX_GREETING_BYTES = 4 * 1024;
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

/** Rules by which a connection narrows those of the hub. */
export type ClientRules = RuleSettings;

/** What must be the same on both ends. */
export interface UserPlace {
  readonly user: string;
  readonly home: string;
  readonly configDir: string;
  readonly stateDir: string;
}

interface ClientRequest {
  readonly place: UserPlace;
  readonly version: string;
  readonly toolset: Settings['toolset'];
  readonly cwd: string;
  readonly rules: ClientRules;
  /** Other settings that were given, in written form; no secrets. */
  readonly given: Readonly<Partial<Record<SettingKey, string>>>;
  /** What its sessions inherit. Kept in memory only. */
  readonly env: Readonly<Record<string, string>>;
  /** The session it runs in, if it runs in one. */
  readonly inside?: string | undefined;
}

/** A client that speaks MCP. */
export interface AttachRequest extends ClientRequest {
  readonly kind: 'attach';
}

/** A command that uses the API as this user. */
export interface TerminalRequest extends ClientRequest {
  readonly kind: 'terminal';
  /** Whether a person sits at its terminal; on Linux the hub looks for itself. */
  readonly isInteractive: boolean;
}

export type HubRequest = (AttachRequest | TerminalRequest | { readonly kind: HubRequestKind }) & {
  /** The client's process. */
  readonly pid?: number | undefined;
};

export interface HubStatus {
  readonly pid: number;
  readonly version: string;
  readonly url: string;
  readonly startedAt: string;
  readonly sessions: number;
  readonly working: number;
  /** Older versions count these as working. */
  readonly waiting?: number;
  readonly connections: number;
  /** What it was started with, for a restart. */
  readonly argv?: readonly string[];
  /** A service manager restarts it if it exits with a failure. */
  readonly isService: boolean;
  /** What holds its sessions' processes; the reason why they end with it, if they do. Older versions do not say. */
  readonly keeper?: { readonly pid: number } | { readonly endsWithHub: string };
}

export type HubReply = { readonly ok: true; readonly version: string } | { readonly ok: false; readonly why: string };

/** What a client and its hub must have in common. */
export function placeOf({ stateDir }: { readonly stateDir: string }, host: Pick<Host, 'env' | 'homedir'>): UserPlace {
  const { username, uid } = os.userInfo();
  return { user: `${username} (${String(uid)})`, home: host.homedir, configDir: claudeConfigDir(host), stateDir };
}

export type End = 'client' | 'hub';

export interface Nonces {
  readonly client: string;
  readonly hub: string;
}

export function newNonce(): string {
  return randomBytes(32).toString('hex');
}

export function isNonce(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/** Names the end that made it, so that one end's proof cannot be sent back as the other's. */
export function proofOf(secret: string, end: End, { client, hub }: Nonces): string {
  return createHmac('sha256', secret).update(`claude-code-mcp ${end} ${client} ${hub}`).digest('hex');
}

export function isProof(given: unknown, secret: string, end: End, nonces: Nonces): boolean {
  const expected = Buffer.from(proofOf(secret, end, nonces));
  const actual = Buffer.from(typeof given === 'string' ? given : '');
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

/** The secret that both ends read from the state directory. */
export async function readSecret(file: string): Promise<string> {
  const handle = await openOwnFile(file, 'read');
  try {
    const secret = (await handle.readFile('utf8')).trim();
    if (!/^[0-9a-f]{64}$/.test(secret)) throw new Error(`${file} does not contain a secret`);
    return secret;
  } finally {
    await handle.close();
  }
}

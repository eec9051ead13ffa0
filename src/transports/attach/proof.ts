import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { openOwnFile } from '../../platform/own-file.ts';

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

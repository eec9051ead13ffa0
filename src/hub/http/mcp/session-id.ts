import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { TOOLSET_NAMES } from '../../../schema/setting-choices.ts';

/**
 * What is needed to reopen an older client's session after the hub has forgotten it. It is carried in the signed
 * session id, so there is nothing to store and nothing to expire.
 */
const Contents = z.object({
  principal: z.string(),
  toolset: z.enum(TOOLSET_NAMES),
  protocolVersion: z.string(),
  capabilities: z.record(z.string(), z.unknown()),
  clientInfo: z.object({ name: z.string(), version: z.string() }),
  nonce: z.string(),
});
export type SessionContents = z.infer<typeof Contents>;

/** Headers must carry it with every request. */
const MAX_NAME_LENGTH = 100;
const MAX_CAPABILITIES_LENGTH = 1024;
const MAX_ID_LENGTH = 4096;

/** What the server looks at; anything else that a client declares would only make the id longer. */
const KEPT_CAPABILITIES = ['elicitation', 'roots', 'sampling'];

export class SessionIds {
  readonly #key: Buffer;

  /** Shared by all hubs of one store, so that any of them can reopen any session. */
  constructor(key: string) {
    this.#key = Buffer.from(key, 'base64url');
  }

  mint(contents: Omit<SessionContents, 'nonce'>): { readonly id: string; readonly nonce: string } {
    const nonce = randomBytes(12).toString('base64url');
    const payload = Buffer.from(JSON.stringify({ ...contents, nonce })).toString('base64url');
    return { id: `${payload}.${this.#sign(payload)}`, nonce };
  }

  /** Undefined if this hub did not sign it. */
  read(id: string): SessionContents | undefined {
    const [payload, signature, ...more] = id.length > MAX_ID_LENGTH ? [] : id.split('.');
    if (payload === undefined || signature === undefined || more.length > 0) return undefined;
    const [given, own] = [Buffer.from(signature), Buffer.from(this.#sign(payload))];
    if (given.length !== own.length || !timingSafeEqual(given, own)) return undefined;
    try {
      return Contents.parse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
    } catch {
      return undefined;
    }
  }

  #sign(payload: string): string {
    return createHmac('sha256', this.#key).update(`mcp-session.${payload}`).digest('base64url');
  }
}

export function newSessionKey(): string {
  return randomBytes(32).toString('base64url');
}

const InitializeParams = z.looseObject({
  protocolVersion: z.string().max(MAX_NAME_LENGTH),
  capabilities: z.record(z.string(), z.unknown()),
  clientInfo: z.looseObject({ name: z.string(), version: z.string() }),
});

/** What is kept of an `initialize`; undefined if the library will refuse it. */
export function keptParams(
  params: unknown,
): Pick<SessionContents, 'protocolVersion' | 'capabilities' | 'clientInfo'> | undefined {
  const parsed = InitializeParams.safeParse(params);
  if (!parsed.success) return undefined;
  const { protocolVersion, capabilities, clientInfo } = parsed.data;
  const kept = Object.fromEntries(
    KEPT_CAPABILITIES.filter((name) => capabilities[name] !== undefined).map((name) => [name, capabilities[name]]),
  );
  const tooLong = JSON.stringify(kept).length > MAX_CAPABILITIES_LENGTH;
  return {
    protocolVersion,
    capabilities: tooLong ? {} : kept,
    clientInfo: {
      name: clientInfo.name.slice(0, MAX_NAME_LENGTH),
      version: clientInfo.version.slice(0, MAX_NAME_LENGTH),
    },
  };
}

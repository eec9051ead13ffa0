import { openAudit } from '../../audit/audit-log.ts';
import { readHubRecord } from '../../config/hub-record.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { messageOf } from '../../errors/errors.ts';
import { expiryFrom, Tokens, type ShownToken } from '../../hub/auth/tokens.ts';
import type { Store } from '../../store/contract.ts';
import { openStore } from '../../store/open-store.ts';
import { storeInUse } from '../hub/running-hub.ts';

/** A reason not to change anything, worded for the user. */
export class Refusal extends Error {}

export interface HubAccessContext {
  readonly stateDir: string;
  /** Works beside a running hub. */
  readonly openStore: () => Promise<Store>;
  /** Why this process may not issue credentials. */
  readonly refusal: string | undefined;
  /** Records what was changed; never the token. */
  readonly record: (what: string, details: Record<string, string>) => void;
  readonly now: () => number;
}

export interface WantedToken {
  readonly name: string;
  readonly attended: boolean;
  readonly expires: string | undefined;
}

/** Distinguishes tokens that belong to a client's entry from those that a person made and may use elsewhere. */
const SUFFIX = ' (installed)';
const ANSWER_WITHIN_MS = 5_000;

/** What `install --http` needs from this user's hub: its address, and tokens for it. */
export class HubAccess {
  readonly #context: HubAccessContext;

  constructor(context: HubAccessContext) {
    this.#context = context;
  }

  /** Throws if this process may not issue credentials. */
  checkRights(): void {
    if (this.#context.refusal !== undefined) throw new Refusal(this.#context.refusal);
  }

  /** The hub that answers there, or the one that runs here. */
  async find(given: string | undefined): Promise<string> {
    const url = given ?? readHubRecord(this.#context.stateDir)?.url;
    if (url === undefined)
      throw new Refusal('No hub is running here; "claude-code-mcp hub start" starts one. Only --http needs it.');
    const answer = await ask(new URL('/healthz', url));
    if (answer.status !== 200) throw new Refusal(`${url} answers ${String(answer.status)}: is that a hub?`);
    return url;
  }

  isValid(token: string): Promise<boolean> {
    return this.#withTokens(async (tokens) => (await tokens.verify(token)) !== undefined);
  }

  /** A caller's token that the hub at this address is known to accept. */
  create(url: string, { name, attended, expires }: WantedToken): Promise<string> {
    return this.#withTokens(async (tokens) => {
      const expiresAt = expiryFrom(expires, this.#context.now());
      const { token, row } = await tokens.create({ name: `${name}${SUFFIX}`, role: 'caller', attended, expiresAt });
      this.#context.record(`token created: ${row.id}`, { name: row.name, role: row.role });
      try {
        const { status } = await ask(new URL('/api/v1/me', url), { authorization: `Bearer ${token}` });
        if (status !== 200)
          throw new Refusal(
            `The hub at ${url} answers ${String(status)} to a new token: it uses a different store. Pass this command the --store and --state-dir of that hub.`,
          );
      } catch (error) {
        await this.#revoke(tokens, row);
        throw error;
      }
      return token;
    });
  }

  /** Revokes a token whose entry is gone. Returns what to tell the user, if anything. */
  retire(token: string): Promise<string | undefined> {
    return this.#withTokens(async (tokens) => {
      const row = await tokens.verify(token);
      if (row === undefined) return undefined;
      if (!row.name.endsWith(SUFFIX))
        return `Its token, ${row.name}, was not created by install and still works: claude-code-mcp token revoke ${row.id}`;
      await this.#revoke(tokens, row);
      return 'Its token was revoked.';
    });
  }

  async #revoke(tokens: Tokens, { id, name }: ShownToken): Promise<void> {
    await tokens.revoke(id);
    this.#context.record(`token revoked: ${id}`, { name });
  }

  async #withTokens<T>(work: (tokens: Tokens) => Promise<T>): Promise<T> {
    this.checkRights();
    const store = await this.#context.openStore();
    try {
      return await work(new Tokens(store, this.#context.now));
    } finally {
      await store.close();
    }
  }
}

async function ask(url: URL, headers: Record<string, string> = {}): Promise<Response> {
  try {
    return await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new Refusal(`The hub at ${url.origin} cannot be reached: ${messageOf(cause)}`);
  }
}

/** To the hub of this machine's user, with its store. */
export async function withHubAccess<T>(settings: Settings, work: (hub: HubAccess) => Promise<T>): Promise<T> {
  const warn = (line: string): void => void process.stderr.write(`claude-code-mcp warn: ${line}\n`);
  const audit = openAudit({ path: settings.auditLog, warn });
  try {
    return await work(
      new HubAccess({
        stateDir: settings.stateDir,
        openStore: async () => openStore({ url: await storeInUse(settings), stateDir: settings.stateDir, warn }),
        refusal: runsBelowSession(settings)
          ? refusedBelowSession('claude-code-mcp install --http (or uninstall of it)')
          : undefined,
        record: (what, details) => audit.record({ kind: 'server', who: 'human', what, outcome: 'ok', details }),
        now: Date.now,
      }),
    );
  } finally {
    await audit.close();
  }
}

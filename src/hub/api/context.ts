import type { Settings } from '../../config/load-settings.ts';
import type { EngineClient } from '../../engine/client.ts';
import type { HubRef } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import type { Principal } from '../../engine/rules/principal.ts';
import type { Once } from '../once.ts';
import type { Tokens } from '../auth/tokens.ts';

/** What the API routes need from the hub. Reads come from the store, changes go through a client. */
export interface ApiContext {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly hub: HubRef;
  readonly version: string;
  readonly settings: Pick<Settings, 'approvals' | 'auditLog' | 'allowSensitiveSessionDetails'>;
  readonly tokens: Pick<Tokens, 'create' | 'list' | 'revoke'>;
  /** Runs each idempotency key once. */
  readonly once: Once;
  /** The engine as this principal may use it. */
  clientFor(principal: Principal): EngineClient;
  /** Resolves when everything so far is stored; awaited before anything is reported. */
  stored(): Promise<void>;
  /** Time of day. */
  now(): number;
  /** Called for every request, for metrics. */
  served?(method: string, route: string, status: number, seconds: number): void;
  /** Unexpected failures, for the log. */
  report(error: unknown): void;
}

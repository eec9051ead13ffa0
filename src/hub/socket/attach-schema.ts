import * as z from 'zod';
import { SETTING_KEYS, type SettingKey } from '../../config/settings-table.ts';
import type { HubRequest } from '../../transports/attach/protocol.ts';
import { HUB_REQUESTS } from '../../schema/enums.ts';
import { APPROVAL_MODES, TOOLSET_NAMES } from '../../schema/setting-choices.ts';

const count = z.number().int().nonnegative();
const names = z.array(z.string());

const rules = z.object({
  approvals: z.enum(APPROVAL_MODES),
  allowedDirs: names.optional(),
  denyOptions: names,
  maxTurns: count.optional(),
  maxBudgetUsd: z.number().positive().optional(),
  allowBypass: z.boolean(),
  sandbox: z.boolean(),
  sandboxNetwork: names,
  maxDepth: count,
  depth: count,
});

const pid = z.number().int().positive().optional();

const attach = z.object({
  kind: z.literal('attach'),
  place: z.object({ user: z.string(), home: z.string(), configDir: z.string(), stateDir: z.string() }),
  version: z.string(),
  toolset: z.enum(TOOLSET_NAMES),
  cwd: z.string(),
  rules,
  given: z.partialRecord(z.enum(SETTING_KEYS as [SettingKey, ...SettingKey[]]), z.string()),
  env: z.record(z.string(), z.string()),
  inside: z.string().min(1).max(200).optional(),
  pid,
});

const plain = z.object({ kind: z.enum(HUB_REQUESTS), pid });

/** What a client wants from the hub, or undefined if it is not understood. */
export function parseHubRequest(line: Record<string, unknown>): HubRequest | undefined {
  const parsed = z.union([attach, plain]).safeParse(line);
  return parsed.success ? (parsed.data as HubRequest) : undefined;
}

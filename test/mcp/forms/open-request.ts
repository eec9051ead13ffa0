import { kindOf, type OpenRequest } from '../../../src/engine/requests/requests.ts';
import type { PermissionAsk } from '../../../src/driver/permission-ask.ts';

export const ASKER = { id: '12345678-0000-4000-8000-000000000000', options: { cwd: '/work/project' } };

export function openRequest(
  toolName: string,
  input: Record<string, unknown>,
  more: Partial<PermissionAsk> = {},
  plan?: string,
): OpenRequest {
  return {
    id: 'r1',
    kind: kindOf(toolName),
    plan,
    createdAt: 0,
    expiresAt: undefined,
    settled: new AbortController().signal,
    ask: permissionAsk(toolName, input, more),
  };
}

export function permissionAsk(
  toolName: string,
  input: Record<string, unknown>,
  more: Partial<PermissionAsk> = {},
): PermissionAsk {
  return {
    requestId: 'r1',
    toolName,
    input,
    toolUseId: 't1',
    onceOnly: false,
    withdrawn: new AbortController().signal,
    ...more,
  };
}

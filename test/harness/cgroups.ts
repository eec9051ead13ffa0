/** Whether tests can create cgroups on this machine, and which ones exist. */

import { existsSync, mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { groupName } from '../../src/platform/run-groups.ts';
import { thisSystem } from '../../src/platform/system.ts';

const parent = process.platform === 'linux' ? thisSystem.ownGroup() : undefined;

function canCreateGroups(): boolean {
  if (parent === undefined) return false;
  const group = join(parent, `claude-code-mcp-test-${process.pid}`);
  try {
    mkdirSync(group);
    const usable = existsSync(join(group, 'cgroup.kill'));
    rmdirSync(group);
    return usable;
  } catch {
    return false;
  }
}

/** The directory to create groups in; skips the test if there is none. */
export function groupsDirectory({ skip }: Pick<TestContext, 'skip'>): string {
  if (parent === undefined || !canCreateGroups()) skip('this machine has no writable cgroup v2 hierarchy');
  return parent!;
}

export function groupsOf(ownerId: string): string[] {
  return readdirSync(parent!).filter((name) => name.startsWith(groupName(ownerId, '')));
}

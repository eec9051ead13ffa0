/** Whether this machine lets a test make cgroups, and which of them are there. */

import { existsSync, mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { groupName } from '../../src/driver/process/run-groups.ts';
import { thisSystem } from '../../src/driver/process/system.ts';

const parent = process.platform === 'linux' ? thisSystem.ownGroup() : undefined;

function canMakeGroups(): boolean {
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

/** The directory in which groups are made; the test is skipped where there is none. */
export function groupsDirectory({ skip }: Pick<TestContext, 'skip'>): string {
  if (parent === undefined || !canMakeGroups()) skip('this machine has no cgroup v2 hierarchy that can be written');
  return parent!;
}

export function groupsOf(ownerId: string): string[] {
  return readdirSync(parent!).filter((name) => name.startsWith(groupName(ownerId, '')));
}

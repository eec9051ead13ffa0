import { posix } from 'node:path';

/**
 * The directory of a process's cgroup in the cgroup v2 hierarchy, from its /proc/<pid>/cgroup and mountinfo. Undefined
 * if the hierarchy is not mounted or its mount does not show this cgroup.
 */
export function ownGroupDirectory(cgroup: string, mountinfo: string): string | undefined {
  const path = /^0::(\/.*)$/m.exec(cgroup)?.[1];
  if (path === undefined) return undefined;
  for (const line of mountinfo.split('\n')) {
    // 31 23 0:28 <root> <mount point> <options> [tags…] - <type> <source> <options>
    const [left = '', right = ''] = line.split(' - ', 2);
    const [, , , root, mountPoint] = left.split(' ').map(unescaped);
    if (!right.startsWith('cgroup2 ') || root === undefined || mountPoint === undefined) continue;
    const below = posix.relative(root, path);
    // A newline would end the line that passes it to the watchdog.
    if (!below.startsWith('..') && !/[\n\r]/.test(mountPoint + below)) return posix.join(mountPoint, below);
  }
  return undefined;
}

/** The kernel escapes spaces and the like as octal numbers. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

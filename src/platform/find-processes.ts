import { darwinMarked } from './darwin-processes.ts';
import { linuxMarked } from './linux-processes.ts';
import { startedSince, type ProcessIdentity } from './process-identity.ts';
import { thisSystem, type System } from './system.ts';

export interface MarkedFilter {
  readonly owner?: string | undefined;
  readonly run?: string | undefined;
  /** Start time of the server that made the marker: anything older cannot be its own. */
  readonly since?: string | undefined;
}

/**
 * The live processes that carry the marker, whatever their parent, group or session; never the calling one. On Windows
 * an environment cannot be read: always empty, see `windows-processes.ts`. Rejects if the system cannot be queried.
 */
export async function findMarked(filter: MarkedFilter, system: System = thisSystem): Promise<ProcessIdentity[]> {
  if (system.platform === 'win32') return [];
  const wanted = ({ owner, run }: { owner: string; run: string }): boolean =>
    (filter.owner === undefined || filter.owner === owner) && (filter.run === undefined || filter.run === run);
  const marked =
    system.platform === 'linux' ? (await linuxMarked(system)).filter(wanted) : await darwinMarked(wanted, system);
  return marked.filter(({ startTime }) => startedSince(startTime, filter.since, system.platform));
}

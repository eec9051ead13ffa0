import { openAudit } from '../../audit/audit-log.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { storeInUse } from '../hub/running-hub.ts';
import { openStore } from '../../store/open-store.ts';
import { HubAccess } from './hub-access.ts';

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

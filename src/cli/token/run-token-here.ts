import { openAudit } from '../../audit/audit-log.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { openStore } from '../../store/open-store.ts';
import { runToken } from './run-token.ts';

/** The `token` command on this machine: the store of the state directory, or the one that `--store` names. */
export async function runTokenHere(rest: readonly string[], settings: Settings): Promise<number> {
  const warn = (line: string): void => void process.stderr.write(`claude-code-mcp warn: ${line}\n`);
  const audit = openAudit({ path: settings.auditLog, warn });
  try {
    return await runToken(rest, {
      openStore: () => openStore({ url: settings.store, stateDir: settings.stateDir, warn }),
      refusal: runsBelowSession(settings) ? refusedBelowSession('claude-code-mcp token') : undefined,
      write: (text) => void process.stdout.write(text),
      writeError: (text) => void process.stderr.write(text),
      now: Date.now,
      record: (what, details) => audit.record({ kind: 'server', who: 'human', what, outcome: 'ok', details }),
    });
  } finally {
    await audit.close();
  }
}

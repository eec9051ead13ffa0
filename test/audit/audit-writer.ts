/** A process that writes to an audit log which others write to as well. Bundled and run by two-servers.test.ts. */

import { openAudit } from '../../src/audit/audit-log.ts';

const [path = '', name = '', entries = '', maxBytes = '', keep = ''] = process.argv.slice(2);
for (let index = 0; index < Number(entries);) {
  const audit = openAudit({
    path,
    maxBytes: Number(maxBytes),
    keep: Number(keep),
    closeWithinMs: 20_000,
    warn: (line) => {
      console.error(line);
      process.exitCode = 1;
    },
  });
  for (const end = index + 10; index < end; index++) {
    const details = { text: 'é'.repeat(index) };
    audit.record({ kind: 'tool_call', who: 'caller', session: name, what: String(index), details });
  }
  await audit.close();
}

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pathsOf, type Host } from '../../config/host.ts';
import { CLIENTS, type InstallClient } from '../install/clients.ts';
import { DEFAULT_NAME } from '../install/server-entry.ts';
import { ok, problem, skipped, type Finding } from './check-setup.ts';

const CHECK = 'Clients';

/**
 * Which clients start this server, and whether the files that their entries name still exist: version managers keep
 * each Node, and what was installed with it, in a directory of its own.
 */
export async function* checkClients(host: Host): AsyncGenerator<Finding> {
  const working: string[] = [];
  let broken = 0;
  for (const [name, client] of Object.entries(CLIENTS) as [string, InstallClient][]) {
    const { title, format } = client;
    const place = client.file(host);
    const text = await readFile(place, 'utf8').catch(() => '');
    for (const [entry, line] of commandsIn(text, format)) {
      const missing = missingFile(line, host);
      if (missing === undefined) working.push(entry === DEFAULT_NAME ? title : `${title} (${entry})`);
      else {
        broken++;
        yield problem(
          CHECK,
          `${title} starts ${missing}, which does not exist (${entry} in ${place})`,
          `Correct the entry: claude-code-mcp install ${name}${entry === DEFAULT_NAME ? '' : ` --name ${entry}`}`,
        );
      }
    }
  }
  if (working.length > 0) yield ok(CHECK, working.join(', '));
  else if (broken === 0) yield skipped(CHECK, 'none has this server yet; add it: claude-code-mcp install <client>');
}

/** A file that its client cannot read either says nothing about this server. */
function commandsIn(text: string, format: InstallClient['format']): [string, readonly string[]][] {
  try {
    // Other programs have a dist/main.mjs too.
    return [...format.commands(text)].filter(
      ([name, line]) => name === DEFAULT_NAME || line.some((word) => word.includes('claude-code-mcp')),
    );
  } catch {
    return [];
  }
}

/** Of the command and its program; what follows them may name files that are yet to be made. */
function missingFile([command = '', program = '']: readonly string[], host: Host): string | undefined {
  return [command, program].find((file) => pathsOf(host).isAbsolute(file) && !existsSync(file));
}

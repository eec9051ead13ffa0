import path from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { parseCommandLine } from '../config/command-line.ts';
import { helpText } from '../config/help.ts';
import { inheritedEnvironment } from '../config/inherited-environment.ts';
import { loadSettings, type SettingsSource } from '../config/load-settings.ts';
import { SettingsError } from '../config/settings-error.ts';

const BAD_USAGE = 2;

/** Runs the command line; resolves with the exit code when there is nothing left to do. */
export async function run(source: SettingsSource): Promise<number> {
  try {
    return await dispatch(source);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`claude-code-mcp: ${error.message}\n`);
    return BAD_USAGE;
  }
}

async function dispatch(source: SettingsSource): Promise<number> {
  const { command, rest } = parseCommandLine(source.argv);
  switch (command) {
    case 'help':
      process.stdout.write(helpText());
      return 0;
    case 'version':
      process.stdout.write(`${packageJson.version}\n`);
      return 0;
    case 'serve': {
      const settings = loadSettings(source);
      const { serveUntilDone } = await import('./serve-until-done.ts');
      return serveUntilDone(settings, {
        env: inheritedEnvironment(source, settings),
        cwd: source.cwd,
        configDir: configDirOf(source),
        version: packageJson.version,
        stderr: (text) => process.stderr.write(text),
      });
    }
    case 'audit': {
      const { auditLog } = loadSettings(source);
      const { runAudit } = await import('../audit/run-audit.ts');
      return runAudit(rest, { path: auditLog, write: (text) => process.stdout.write(text) });
    }
    default:
      throw new SettingsError(`"${command}" is not available in this version.`);
  }
}

/** Where Claude Code keeps what it knows of this user. */
function configDirOf({ env, homedir }: SettingsSource): string {
  return env['CLAUDE_CONFIG_DIR'] ?? path.join(homedir, '.claude');
}

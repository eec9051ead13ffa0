import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../errors/errors.ts';
import { SERVICE_VARIABLE } from '../../config/hub-record.ts';
import type { Settings } from '../../config/load-settings.ts';
import { SECRETS_VARIABLE, secretsOf, withoutSecrets } from '../../config/secret-variables.ts';
import { SETTING_KEYS, variableOf } from '../../config/settings-table.ts';
import { flagsOf, hubLogFile } from './background.ts';
import type { HubCommandContext } from './run-hub.ts';
import {
  launchdFile,
  launchdPlist,
  scheduledTaskXml,
  SERVICE_NAME,
  systemdUnit,
  systemdUnitFile,
  type ServiceSpec,
} from './service-files.ts';

interface Service {
  readonly file: string;
  readonly text: string;
  /** Only this one has been run; the others follow the documentation of their systems. */
  readonly isTried: boolean;
  readonly install: readonly (readonly string[])[];
  readonly uninstall: readonly (readonly string[])[];
}

/** `--print` shows the file and changes nothing. */
export async function installService(context: HubCommandContext, options: readonly string[]): Promise<number> {
  const service = serviceOf(context);
  if (options.includes('--print')) {
    process.stdout.write(service.text);
    return 0;
  }
  await mkdir(path.dirname(service.file), { recursive: true });
  await mkdir(context.settings.stateDir, { recursive: true, mode: 0o700 });
  await writePrivate(secretsFile(context.settings), `${JSON.stringify(secretsOf(context.settings))}\n`);
  await writePrivate(service.file, service.text);
  process.stdout.write(`Wrote ${service.file}\n`);
  if (!service.isTried) process.stdout.write('Services on this system have not been tested by the authors yet.\n');
  return runAll(service.install, context);
}

export async function uninstallService(context: HubCommandContext): Promise<number> {
  const service = serviceOf(context);
  if (!existsSync(service.file)) {
    process.stdout.write(`The hub is not installed as a service: there is no ${service.file}\n`);
    return 0;
  }
  const code = await runAll(service.uninstall, context);
  await rm(service.file, { force: true });
  await rm(secretsFile(context.settings), { force: true });
  process.stdout.write(`Removed ${service.file}\n`);
  return code;
}

async function writePrivate(file: string, text: string): Promise<void> {
  await writeFile(file, text, { mode: 0o600 });
  // It may have existed before.
  await chmod(file, 0o600);
}

async function runAll(commands: readonly (readonly string[])[], { env }: HubCommandContext): Promise<number> {
  for (const [program = '', ...args] of commands) {
    const line = [program, ...args].join(' ');
    try {
      await promisify(execFile)(program, args, { env, timeout: 30_000 });
      process.stdout.write(`Ran ${line}\n`);
    } catch (error) {
      process.stderr.write(`Could not run ${line}: ${messageOf(error).trim()}\nRun it yourself where you can.\n`);
      return 1;
    }
  }
  return 0;
}

function serviceOf(context: HubCommandContext): Service {
  const { platform, homedir, env } = context;
  const spec = specOf(context);
  switch (platform) {
    case 'darwin': {
      const file = launchdFile(homedir);
      const domain = `gui/${String(process.getuid?.() ?? 501)}`;
      return {
        file,
        text: launchdPlist(spec),
        isTried: false,
        install: [['launchctl', 'bootstrap', domain, file]],
        uninstall: [['launchctl', 'bootout', domain, file]],
      };
    }
    case 'win32': {
      const file = path.join(context.settings.stateDir, `${SERVICE_NAME}.xml`);
      return {
        file,
        text: scheduledTaskXml(spec),
        isTried: false,
        install: [
          ['schtasks', '/Create', '/F', '/TN', SERVICE_NAME, '/XML', file],
          ['schtasks', '/Run', '/TN', SERVICE_NAME],
        ],
        uninstall: [['schtasks', '/Delete', '/F', '/TN', SERVICE_NAME]],
      };
    }
    default:
      return {
        file: systemdUnitFile(homedir, env['XDG_CONFIG_HOME']),
        text: systemdUnit(spec),
        isTried: true,
        install: [
          ['systemctl', '--user', 'daemon-reload'],
          ['systemctl', '--user', 'enable', '--now', SERVICE_NAME],
        ],
        uninstall: [['systemctl', '--user', 'disable', '--now', SERVICE_NAME]],
      };
  }
}

function specOf({ settings, program, homedir, env, argv }: HubCommandContext): ServiceSpec {
  const { argv: open } = withoutSecrets({ argv, env });
  return {
    node: process.execPath,
    program,
    flags: flagsOf(open).filter((argument) => argument !== '--print'),
    logFile: hubLogFile(settings.stateDir),
    homedir,
    env: serviceEnvironment(env, secretsFile(settings)),
  };
}

/** The definition of a service, and the environment of what it runs, can be read by every program of the user. */
function secretsFile({ stateDir }: Settings): string {
  return path.join(stateDir, 'service-secrets.json');
}

/** A service starts with next to nothing: what Claude Code and this hub need is written into it. */
const KEPT_VARIABLES = ['PATH', 'HOME', 'CLAUDE_CONFIG_DIR', 'XDG_STATE_HOME', 'LANG'];

function serviceEnvironment(env: NodeJS.ProcessEnv, secrets: string): Record<string, string> {
  const names = [...KEPT_VARIABLES, ...SETTING_KEYS.map(variableOf)];
  const kept = names.flatMap((name) => (env[name] ? [[name, env[name]] as const] : []));
  return Object.fromEntries([...kept, [SERVICE_VARIABLE, '1'], [SECRETS_VARIABLE, secrets]]);
}

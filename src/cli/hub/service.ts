import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../errors/errors.ts';
import { SERVICE_VARIABLE, HUB_NODE_FLAGS } from '../../config/hub-record.ts';
import type { Settings } from '../../config/load-settings.ts';
import { SECRETS_VARIABLE, secretsOf, withoutSecrets } from '../../config/secret-variables.ts';
import { SETTING_KEYS, variableOf } from '../../config/settings-table.ts';
import { flagsOf, hubLogFile } from './background.ts';
import type { HubCommandContext } from './run-hub.ts';

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

/** What an operating-system service has to run. */
interface ServiceSpec {
  readonly node: string;
  readonly program: string;
  readonly flags: readonly string[];
  readonly logFile: string;
  readonly homedir: string;
  /** Settings of the hub, and where its Claude Code is found; nothing else of the user's environment. */
  readonly env: Readonly<Record<string, string>>;
}

const SERVICE_NAME = 'claude-code-mcp-hub';
const LAUNCHD_LABEL = 'io.github.claude-code-mcp.hub';

function systemdUnitFile(homedir: string, configHome: string | undefined): string {
  return path.join(configHome ?? path.join(homedir, '.config'), 'systemd', 'user', `${SERVICE_NAME}.service`);
}

function launchdFile(homedir: string): string {
  return path.join(homedir, 'Library', 'LaunchAgents', `${LAUNCHD_LABEL}.plist`);
}

/** A systemd user unit. */
function systemdUnit({ node, program, flags, logFile, homedir, env }: ServiceSpec): string {
  const command = [node, ...HUB_NODE_FLAGS, program, 'hub', ...flags]
    .map((argument) => systemdQuote(argument))
    .join(' ');
  return [
    '[Unit]',
    'Description=claude-code-mcp hub',
    '',
    '[Service]',
    `ExecStart=${command}`,
    `WorkingDirectory=${systemdPath(homedir)}`,
    ...Object.entries(env).map(([name, value]) => `Environment=${systemdQuote(`${name}=${value}`, false)}`),
    'Restart=on-failure',
    'RestartSec=2',
    'TimeoutStopSec=15',
    // The hub ends its sessions itself, and its watchdog ends what is left.
    'KillMode=mixed',
    'UMask=0077',
    `StandardOutput=append:${systemdPath(logFile)}`,
    `StandardError=append:${systemdPath(logFile)}`,
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n');
}

/** Percent signs are specifiers everywhere, dollar signs variables in commands only. */
function systemdQuote(text: string, isCommand = true): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('%', '%%');
  return `"${isCommand ? escaped.replaceAll('$', '$$$$') : escaped}"`;
}

/** A path used as is: systemd takes it to the end of the line. */
function systemdPath(text: string): string {
  return text.replaceAll('%', '%%');
}

/** A launchd agent. */
function launchdPlist({ node, program, flags, logFile, homedir, env }: ServiceSpec): string {
  const strings = (values: readonly string[]): string =>
    values.map((value) => `    <string>${xml(value)}</string>`).join('\n');
  const variables = Object.entries(env).map(
    ([name, value]) => `    <key>${xml(name)}</key>\n    <string>${xml(value)}</string>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${LAUNCHD_LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${strings([node, ...HUB_NODE_FLAGS, program, 'hub', ...flags])}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join('\n')}
  </dict>
  <key>WorkingDirectory</key>
  <string>${xml(homedir)}</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>15</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  <string>${xml(logFile)}</string>
  <key>StandardErrorPath</key>
  <string>${xml(logFile)}</string>
</dict>
</plist>
`;
}

/** A task for the Windows task scheduler, which runs at logon with the user's own rights. */
function scheduledTaskXml({ node, program, flags, homedir }: ServiceSpec): string {
  const args = [...HUB_NODE_FLAGS, program, 'hub', ...flags].map(windowsQuote).join(' ');
  return `<?xml version="1.0" encoding="UTF-8"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>
  <Principals><Principal id="Author"><LogonType>InteractiveToken</LogonType><RunLevel>LeastPrivilege</RunLevel></Principal></Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure><Interval>PT1M</Interval><Count>3</Count></RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>${xml(node)}</Command>
      <Arguments>${xml(args)}</Arguments>
      <WorkingDirectory>${xml(homedir)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`;
}

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** As the C runtime splits it again. */
function windowsQuote(text: string): string {
  return `"${text.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, '$1$1')}"`;
}

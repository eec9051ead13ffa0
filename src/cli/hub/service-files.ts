import path from 'node:path';
import { HUB_NODE_FLAGS } from '../../config/hub-record.ts';

/** What an operating-system service has to run. */
export interface ServiceSpec {
  readonly node: string;
  readonly program: string;
  readonly flags: readonly string[];
  readonly logFile: string;
  readonly homedir: string;
  /** Settings of the hub, and where its Claude Code is found; nothing else of the user's environment. */
  readonly env: Readonly<Record<string, string>>;
}

export const SERVICE_NAME = 'claude-code-mcp-hub';
const LAUNCHD_LABEL = 'io.github.claude-code-mcp.hub';

export function systemdUnitFile(homedir: string, configHome: string | undefined): string {
  return path.join(configHome ?? path.join(homedir, '.config'), 'systemd', 'user', `${SERVICE_NAME}.service`);
}

export function launchdFile(homedir: string): string {
  return path.join(homedir, 'Library', 'LaunchAgents', `${LAUNCHD_LABEL}.plist`);
}

/** A systemd user unit. */
export function systemdUnit({ node, program, flags, logFile, homedir, env }: ServiceSpec): string {
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
export function launchdPlist({ node, program, flags, logFile, homedir, env }: ServiceSpec): string {
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
export function scheduledTaskXml({ node, program, flags, homedir }: ServiceSpec): string {
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

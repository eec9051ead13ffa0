import { tmpdir } from 'node:os';
import packageJson from '../../package.json' with { type: 'json' };
import { parseCommandLine } from '../config/command-line.ts';
import { helpText } from '../config/help.ts';
import { isKeeperAlive, readHubRecord } from '../config/hub-record.ts';
import { claudeConfigDir } from '../config/host.ts';
import { inheritedEnvironment } from '../config/child-environment.ts';
import { loadSettings, type Settings, type SettingsSource } from '../config/load-settings.ts';
import { withoutSecrets } from '../config/secret-variables.ts';
import { SettingsError } from '../config/bad-input.ts';
import { failureLine } from '../errors/errors.ts';
import type { AttachedHub } from '../transports/attach/connect-hub.ts';
import { OPENING_ANSWERS } from '../transports/opening-answers.ts';
import { openStdio, type Opening } from '../transports/opening.ts';

const BAD_USAGE = 2;
const FAILED = 1;

export interface CommandSource extends SettingsSource {
  /** The script that node was started with: what a client has to run to get this server. */
  readonly program: string;
}

/** Runs the command line; resolves with the exit code when there is nothing left to do. */
export async function run(source: CommandSource | (() => CommandSource)): Promise<number> {
  try {
    return await dispatch(typeof source === 'function' ? source() : source);
  } catch (error) {
    if (error instanceof SettingsError) {
      process.stderr.write(`claude-code-mcp: ${error.message}\n`);
      return BAD_USAGE;
    }
    const line = failureLine(error);
    if (line === undefined) throw error;
    process.stderr.write(`claude-code-mcp: ${line}\n`);
    return FAILED;
  }
}

/** Commands are loaded on demand: starting the server must not pay for the others. */
async function dispatch(source: CommandSource): Promise<number> {
  const { command, topic, flags, rest } = parseCommandLine(source.argv);
  const { version } = packageJson;
  if (command !== 'serve' && command !== 'hub') process.stdout.off('error', onClosedPipe).on('error', onClosedPipe);
  switch (command) {
    case 'help':
      process.stdout.write(
        topic === undefined ? helpText() : await (await import('./commands.ts')).commandHelp(topic, rest[0]),
      );
      return 0;
    case 'version':
      process.stdout.write(`${version}\n`);
      return 0;
    case 'serve':
      return serveClient(source, version);
    case 'hub': {
      const settings = await withKnownNames(loadSettings(source, {}, 'hub'));
      const { runHub } = await import('./hub/run-hub.ts');
      // What the hub starts inherits its environment; its secrets are in the settings.
      const { env } = withoutSecrets({ argv: [], env: inheritedEnvironment(source, settings) });
      return runHub(rest, { ...source, env, settings, version });
    }
    case 'inbox':
    case 'sessions':
    case 'show':
    case 'follow':
    case 'start':
    case 'send':
    case 'allow':
    case 'deny': {
      const settings = loadSettings(source);
      const { runClient } = await import('./client/run-client.ts');
      const { openTerminal, untilInterrupted } = await import('./terminal/terminal.ts');
      const inherited = inheritedEnvironment(source, settings);
      const context = { ...source, inherited, version, stderr: (text: string) => process.stderr.write(text) };
      return untilInterrupted((signal) =>
        runClient(command, rest, { settings, source: context, terminal: openTerminal(), signal }),
      );
    }
    case 'audit': {
      const settings = loadSettings(source, {}, 'hub');
      const { runAuditHere } = await import('./audit/run-audit.ts');
      return runAuditHere(rest, settings);
    }
    case 'token': {
      const settings = loadSettings(source, {}, 'hub');
      const { runTokenHere } = await import('./token/run-token.ts');
      return runTokenHere(rest, settings);
    }
    case 'rules': {
      const settings = loadSettings(source, {}, 'hub');
      const { runRulesHere } = await import('./rules/run-rules.ts');
      const inherited = inheritedEnvironment(source, settings);
      return runRulesHere(rest, settings, {
        ...source,
        inherited,
        version,
        stderr: (text) => process.stderr.write(text),
      });
    }
    case 'worktrees': {
      const { worktreesDir } = loadSettings(source);
      const { runWorktrees } = await import('./worktrees/run-worktrees.ts');
      const { findGit } = await import('../workspace/git/git-process.ts');
      const { openTerminal } = await import('./terminal/terminal.ts');
      const { exclusively } = await import('../workspace/worktree/worktree-records.ts');
      const { worktreeLock } = await import('../transcripts/session-lock.ts');
      const git = await findGit(source.env);
      const host = git && { git, worktreesDir, exclusively: exclusively(worktreeLock(worktreesDir)) };
      return runWorktrees(rest, { host, terminal: openTerminal(), now: Date.now() });
    }
    case 'demo': {
      const settings = loadSettings(source);
      const { runDemo } = await import('./demo/run-demo.ts');
      const { openTerminal, untilInterrupted } = await import('./terminal/terminal.ts');
      return untilInterrupted((signal) =>
        runDemo(rest, { ...source, version, settings, temporaryDir: tmpdir(), terminal: openTerminal(), signal }),
      );
    }
    case 'doctor': {
      const { runDoctor } = await import('./doctor/run-doctor.ts');
      const { openTerminal, untilInterrupted } = await import('./terminal/terminal.ts');
      return untilInterrupted((signal) =>
        runDoctor(rest, {
          ...source,
          version,
          nodeVersion: process.versions.node,
          configDir: claudeConfigDir(source),
          temporaryDir: tmpdir(),
          terminal: openTerminal(),
          signal,
        }),
      );
    }
    case 'install':
    case 'uninstall': {
      // An invalid setting would otherwise only show up when the client starts the server.
      if (command === 'install') await withKnownNames(loadSettings(source));
      const { runInstall } = await import('./install/run-install.ts');
      const { openTerminal } = await import('./terminal/terminal.ts');
      const { execPath } = process;
      return runInstall(command, rest, {
        ...source,
        command: execPath,
        flags,
        terminal: openTerminal(),
        now: new Date(),
        withHub: async (work) => {
          const { withHubAccess } = await import('./install/hub-access.ts');
          return withHubAccess(loadSettings(source, {}, 'hub'), work);
        },
      });
    }
  }
}

/** `… | head`: whoever has read enough closes the pipe, and there is nobody left to tell. */
function onClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
}

/** A person who runs the command to see what it does would otherwise see nothing. */
const WAITING = `claude-code-mcp is waiting for an MCP client to speak on stdin; clients start it themselves.
To add it to one: claude-code-mcp install <client>. More: claude-code-mcp --help. Ctrl-C ends it.
`;

/**
 * Serves from here, or through this user's hub. The first answers come from a record that is valid for this version, so
 * a hub of another version is asked before them.
 */
async function serveClient(source: CommandSource, version: string): Promise<number> {
  const settings = await withKnownNames(loadSettings(source));
  if (process.stdin.isTTY) process.stderr.write(WAITING);
  const inherited = inheritedEnvironment(source, settings);
  const context = { ...source, inherited, version, stderr: (text: string) => process.stderr.write(text) };
  const record = settings.hub === 'off' ? undefined : readHubRecord(settings.stateDir);
  const find = async (announcedVersion?: string): Promise<AttachedHub | undefined> =>
    (await import('./serve/find-hub.ts')).findHub(record, settings, context, announcedVersion);
  const asksFirst = settings.hub === 'require' || (record !== undefined && record.version !== version);
  let hub = asksFirst ? await find() : undefined;
  const answers = hub === undefined || hub.version === version ? OPENING_ANSWERS[settings.toolset] : undefined;
  const opening: Opening | undefined = answers && (await openStdio(answers, process.stdin, process.stdout));
  if (answers && !opening) {
    hub?.socket.destroy();
    return 0;
  }
  const mayHaveHub = record !== undefined || (settings.hub !== 'off' && isKeeperAlive(settings.stateDir));
  if (mayHaveHub && !asksFirst) hub = await find(version);
  if (hub) {
    const { bridgeUntilDone } = await import('./serve/bridge-until-done.ts');
    return bridgeUntilDone(hub, settings, context, opening);
  }
  const { serveUntilDone } = await import('./serve/serve.ts');
  return serveUntilDone(settings, { ...context, opening, env: inherited });
}

/** Before the client gets an answer: a server with an invalid setting must not appear to have started. */
async function withKnownNames(settings: Settings): Promise<Settings> {
  if (settings.rules !== undefined)
    (await import('../engine/rules/standing/rules-file.ts')).readRulesFile(settings.rules);
  if (settings.denyOptions.length === 0) return settings;
  const { withKnownDenyOptions } = await import('../driver/options-table.ts');
  return withKnownDenyOptions(settings);
}

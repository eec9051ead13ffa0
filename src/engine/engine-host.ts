import path from 'node:path';
import { openAudit } from '../audit/audit-log.ts';
import { findGitBash } from '../config/needed-programs.ts';
import { claudeConfigDir, type Host } from '../config/host.ts';
import type { Settings } from '../config/load-settings.ts';
import { Driver } from '../driver/driver.ts';
import type { KeptProcesses, KeptRunOffer } from '../keeper/kept-processes.ts';
import type { ProcessHome, StartedChild } from '../platform/process-home.ts';
import { ProcessOwner } from '../platform/process-owner.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { createTranscripts } from '../transcripts/disk-sessions.ts';
import { findHolder, isAlive, lockSession, worktreeLock } from '../transcripts/session-lock.ts';
import { ignoredRulesWarning, globalClaudeFile, projectTrust } from '../transcripts/project-trust.ts';
import { SystemClock } from './clock.ts';
import type { OtherHubs } from './elsewhere/elsewhere.ts';
import { Engine } from './engine.ts';
import { findKeptFiles, rewindCopiesDir } from './session/kept-files.ts';
import type {
  EngineServices,
  FleetLease,
  KeptAgents,
  SessionArchive,
  StandingRules,
  TranscriptMirrors,
} from './ports.ts';

/** What an engine takes from its host program. Sessions work in `cwd` unless a directory is given. */
export interface HostContext extends Host {
  readonly log: EngineServices['log'];
  /** What outlives this process, if anything does. */
  readonly archive?: SessionArchive | undefined;
  /** Other hubs on the same store, if there can be any. */
  readonly others?: OtherHubs | undefined;
  /** Where others share the archive. */
  readonly lease?: FleetLease | undefined;
  readonly transcriptMirrors?: TranscriptMirrors | undefined;
  /** The processes that outlive this one, if any do. */
  readonly kept?: KeptProcesses | undefined;
  /** Decisions that people have made in advance. */
  readonly standingRules?: StandingRules | undefined;
}

/** Which sessions the processes of this machine belong to, as far as this engine has started them. */
export type OwnProcesses = Pick<ProcessHome, 'sessionOfProcess' | 'sessionOfGroup'>;

export interface HostedEngine {
  /** Closing it ends its sessions, their processes and the services around it. */
  readonly engine: Engine;
  readonly processes: OwnProcesses;
  /**
   * Ends what an earlier engine left behind when it was killed. Resolves once those processes are gone; never rejects.
   */
  sweep(): Promise<void>;
  /**
   * Processes of sessions that others could take over may run for this much longer; called repeatedly while they may.
   */
  extendLease(ms: number): void;
  /** Prepares for the first session: loads the Agent SDK shortly, and warms a spare if configured. */
  preload(): void;
}

/** An engine with the services of this machine: real processes, real transcripts, an audit log. */
export function hostEngine(
  settings: Settings,
  { log, archive, others, lease, transcriptMirrors, kept, standingRules, ...host }: HostContext,
): HostedEngine {
  const configDir = claudeConfigDir(host);
  const warn = (line: string): void => log('warn', line);
  const audit = openAudit({ path: settings.auditLog, warn });
  const owner = kept ?? new ProcessOwner({ stateDir: settings.stateDir, warn });
  const driver = new Driver(owner);
  const globalFile = globalClaudeFile(host);
  const engine = new Engine(settings, host.cwd, {
    clock: new SystemClock(),
    driver,
    transcripts: {
      ...createTranscripts({ configDir }),
      findHolder: (id, isOurs) => findHolder(configDir, id, isOurs),
      lock: (id) => lockSession(path.join(configDir, 'claude-code-mcp', 'locks'), id),
    },
    audit,
    ...(archive && { archive }),
    ...(others && { others }),
    ...(lease && { lease }),
    ...(transcriptMirrors && { transcriptMirrors }),
    ...(kept && { kept: keptAgents(kept, driver) }),
    ...(standingRules && { standingRules }),
    configDir,
    privatePlaces: privatePlaces(settings, configDir, host),
    isTrusted: async (directory) => (await projectTrust(directory, globalFile)).trust === 'own',
    findGitBash: () => findGitBash(host, settings.gitBashPath),
    startWarnings: (options) => startWarnings(options, host),
    workspaces: once(async () => {
      const { Workspaces } = await import('../workspace/workspace.ts');
      const { fullWork, workReport } = await import('../workspace/report/work-report.ts');
      const snapshotsDir = path.join(settings.stateDir, 'snapshots');
      const { worktreesDir } = settings;
      const lock = worktreeLock(worktreesDir);
      const retainMs = settings.retainDays * 24 * 3_600_000;
      const plansDir = path.join(configDir, 'plans');
      const workspaces = new Workspaces({ env: host.env, worktreesDir, snapshotsDir, plansDir, retainMs, lock });
      workspaces.sweep().catch((error: unknown) => log('debug', `sweep of the workspaces: ${String(error)}`));
      return { workspaces, fullWork, workReport };
    }),
    baseEnv: host.env,
    log,
    async release() {
      await driver.close();
      await owner.release();
      await audit.close();
    },
  });
  return {
    engine,
    processes: owner,
    async sweep() {
      const elsewhere = (pid: number): boolean => pid !== process.pid && isAlive(pid);
      findKeptFiles(rewindCopiesDir(settings.stateDir), elsewhere).then(
        (lines) => lines.forEach(warn),
        (error: unknown) => warn(String(error)),
      );
      await owner.sweep().catch((error: unknown) => warn(String(error)));
    },
    extendLease: (ms) => owner.extend(ms),
    preload() {
      driver.preload((line) => log('debug', line));
      if (settings.prewarm) {
        const keepSpare = async (): Promise<void> =>
          driver.keepSpare(await engine.plainLaunch(), (line) => log('debug', line));
        keepSpare().catch((error: unknown) => log('debug', `prewarm: ${String(error)}`));
      }
    },
  };
}

function keptAgents(kept: KeptProcesses, driver: Driver): KeptAgents {
  const offerOf = (wanted: string): KeptRunOffer | undefined => kept.offers.find(({ run }) => run === wanted);
  return {
    find(sessionId) {
      const offer = kept.offers.find(({ label }) => label.session === sessionId);
      if (!offer) return undefined;
      const { run, label, exit, suspect } = offer;
      return { run, ...label, hasEnded: exit !== undefined, deaths: suspect?.deaths ?? 0 };
    },
    has: (pid) => kept.sessionOfProcess(pid) !== undefined,
    async adopt({ run, after = 0 }, launch, listener) {
      const offer = offerOf(run);
      if (!offer) throw new Error('the process is gone');
      const start = (): StartedChild => {
        const child = kept.take(offer, after);
        return { child, stdin: child.stdin };
      };
      return driver.adopt(start, run, launch, listener);
    },
    async end({ run }) {
      const offer = offerOf(run);
      if (offer) await kept.end(offer);
    },
    leave: () => kept.leave(),
  };
}

function privatePlaces(settings: Settings, configDir: string, { homedir }: Host): string[] {
  const { stateDir, worktreesDir, auditLog, tlsKey } = settings;
  // The usual place holds what was there before the user chose another.
  const places = [stateDir, worktreesDir, configDir, path.join(homedir, '.claude'), path.join(homedir, '.claude.json')];
  return [...places, ...(auditLog === 'off' ? [] : [auditLog]), ...(tlsKey === undefined ? [] : [tlsKey])];
}

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** What a caller should know before it relies on a session started with these options. */
async function startWarnings(
  { cwd, settingSources, permissionMode, projectConfigRoot }: SessionOptions,
  host: Host,
): Promise<string[]> {
  // A session that never asks needs no rules.
  if (permissionMode === 'bypassPermissions') return [];
  const query = { cwd: projectConfigRoot ?? cwd ?? host.cwd, settingSources };
  const places = { configDir: claudeConfigDir(host), globalFile: globalClaudeFile(host) };
  const ignored = await ignoredRulesWarning(query, places);
  return ignored === undefined ? [] : [ignored];
}

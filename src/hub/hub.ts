import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import os from 'node:os';
import { promisify } from 'node:util';
import { claudeConfigDir } from '../config/host.ts';
import { SERVICE_VARIABLE } from '../config/hub-record.ts';
import { refusedBelowSession, type Settings } from '../config/load-settings.ts';
import { secretsOf } from '../config/secret-variables.ts';
import { hostEngine, type HostContext } from '../engine/engine-host.ts';
import { messageOf } from '../errors/errors.ts';
import type { KeptProcesses } from '../keeper/kept-processes.ts';
import { cgroupOf } from '../platform/ancestors.ts';
import { nestedIn, rolesThatMay } from '../engine/rules/access.ts';
import type { TranscriptMirrors } from '../engine/ports.ts';
import type { HubRequest, HubStatus } from '../transports/attach/protocol.ts';
import { serveHubHttp, stateKeyIn } from './http-part.ts';
import { becomeHub } from './instance.ts';
import type { Fleet } from '../fleet/other-hubs.ts';
import { openStorage, type HubStorage } from './storage.ts';
import { auditMissingDecisions } from './missing-decisions.ts';
import { HubMetrics } from './metrics/hub-metrics.ts';
import { notifyTarget } from './notify/notify-target.ts';
import { Notifier, type NotifierServices } from './notify/notify.ts';
import { openPusher } from './notify/pusher.ts';
import { Once, onceForTools } from './once.ts';
import { RuleBook } from './rules/rule-book.ts';
import { peerOf } from './socket/peer.ts';
import { SignInCodes, removeSignInPage, removeSignInPages } from './auth/sign-in.ts';
import { SocketClients } from './socket/socket-clients.ts';
import {
  makePrivateDirectory,
  socketPath,
  listenOnSocket,
  type SocketHost,
  type SocketAnswer,
  type SocketServer,
} from './socket/socket-server.ts';

export interface HubContext extends HostContext {
  readonly version: string;
  /** What the hub was started with, for a restart; without secrets. */
  readonly argv: readonly string[];
  /** Where the files of the dashboard are, if it was built. */
  readonly dashboardDir: string;
  /** The program that keeps Claude Code running without the hub; without it, sessions end with the hub. */
  readonly keeperFile?: string | undefined;
}

/** `leave`: processes are left to the next hub. `restart`: so they are, and the service manager starts it. */
export type StopRequest = 'stop' | 'leave' | 'restart';

export interface RunningHub {
  /** Where it listens for HTTP. */
  readonly url: string;
  readonly socket: string;
  /** Resolves when an authorised client asks the hub to stop, or its service manager to restart it. */
  readonly stopRequested: Promise<StopRequest>;
  /** Ends connections and sessions, and their processes unless those are kept for the next hub. Idempotent. */
  close(processes?: 'end' | 'keep'): Promise<void>;
}

const UNPROVEN = 'it cannot identify the process of this client, for example because it runs in another container';

const UNLIMITED_CALLERS =
  'callers over HTTP may start sessions in any directory of this user outside the hub’s and Claude Code’s own files; limit them with CLAUDE_CODE_MCP_ALLOWED_DIRS';

/** How long a hub that stops waits for calls that are being carried out. */
const LAST_CALLS_MS = 3_000;

/** Everything the hub is made of. Throws `HubRunsAlready` if this state directory already has one. */
export async function startHub(settings: Settings, context: HubContext): Promise<RunningHub> {
  const { version, argv, dashboardDir, keeperFile, ...host } = context;
  const startedAt = new Date().toISOString();
  const identity = { name: 'claude-code-mcp', version };
  const codes = new SignInCodes(Date.now, (hash) => {
    removeSignInPage(settings.stateDir, hash).catch((error: unknown) => host.log('warn', `hub open: ${String(error)}`));
  });
  let requestStop: (how: StopRequest) => void = () => undefined;
  const stopRequested = new Promise<StopRequest>((resolve) => (requestStop = resolve));
  let processesAtEnd: 'end' | 'keep' = 'end';

  // Undone in reverse order, at the end or when a later part fails to start.
  const undo: (() => Promise<void>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse())
      await step().catch((error: unknown) => host.log('error', `at the end: ${String(error)}`));
  };

  try {
    const instance = await becomeHub(settings.stateDir);
    undo.push(() => instance.release());
    undo.push(() => removeSignInPages(settings.stateDir));
    await removeSignInPages(settings.stateDir);

    const storage = await openStorage({
      settings,
      version,
      now: Date.now,
      log: host.log,
      onFenced: () => {
        host.log('error', 'another hub has replaced this one in the store; stopping');
        requestStop('stop');
      },
    });
    undo.push(() => storage.close(processesAtEnd));
    const stateKey = await stateKeyIn(storage.store);

    const rules = await RuleBook.open({
      store: storage.store,
      now: Date.now,
      warn: (line) => host.log('warn', line),
    });
    undo.push(() => rules.close());
    if (settings.rules !== undefined)
      host.log(
        'warn',
        'CLAUDE_CODE_MCP_RULES is for servers without a hub; give the hub its rules with `rules import`',
      );
    const fleet = await joinFleet(storage);
    const kept = keeperFile === undefined ? undefined : await openKeeper(settings, host, storage, keeperFile, stateKey);
    undo.push(async () => {
      if (processesAtEnd === 'keep') kept?.leave();
      await kept?.release();
    });
    const hosted = hostEngine(settings, {
      ...host,
      kept,
      archive: storage.journal,
      standingRules: rules,
      lease: storage.lease,
      others: fleet?.others,
      transcriptMirrors: await openMirrors(settings, host, storage),
    });
    const { engine } = hosted;
    undo.push(() => engine.close(processesAtEnd));
    // A session being resumed must not be blocked by its own process from before the restart.
    await hosted.sweep();
    const { store, by } = storage;
    const missing = { store, hub: by.hub, startedAt: Date.parse(startedAt), auditLog: settings.auditLog };
    auditMissingDecisions({ ...missing, audit: engine.audit }).catch((error: unknown) =>
      host.log('warn', `audit log: not compared with the store: ${messageOf(error)}`),
    );
    await storage.restore(hosted, kept);
    const runner = fleet?.runCommands(engine, host.log);
    undo.push(async () => runner?.close());

    const once = new Once({ store: storage.store, hub: storage.by, now: Date.now });
    // Whoever sends a call again to the next hub is to get its outcome.
    undo.push(() => once.settled(LAST_CALLS_MS));
    const parts: { notifier?: Notifier | undefined } = {};
    const metrics = new HubMetrics({ engine, store: storage.store, version, notifier: () => parts.notifier });
    const push = await openPusher(settings, storage.store, {
      clock: engine.clock,
      audit: engine.audit,
      warn: (line) => host.log('warn', line),
    });
    undo.push(() => push.close());
    const http = await serveHubHttp({
      engine,
      metrics,
      push,
      store: storage.store,
      hub: storage.by,
      isReady: () => storage.isWritable,
      once,
      settings,
      identity,
      codes,
      dashboardDir,
      stateKey,
      rules,
      log: host.log,
    });
    undo.push(() => http.close());
    parts.notifier = await startNotifier(settings, {
      store: storage.store,
      hub: storage.by,
      url: settings.behindProxy ?? http.url,
      clock: engine.clock,
      audit: engine.audit,
      warn: (line) => host.log('warn', line),
    });
    undo.push(async () => parts.notifier?.close());
    push.start();

    if (settings.allowedDirs === undefined && (await hasCallersOverHttp(settings, storage.store)))
      host.log('warn', UNLIMITED_CALLERS);

    const clients = new SocketClients({
      engine,
      settings,
      host,
      identity,
      stateKey,
      observe: metrics.observer('pipe'),
      once: onceForTools(once),
      serveApi: (socket, caller) => http.serveApi(socket, caller),
    });
    const answer = async (request: HubRequest, nonce: string): Promise<SocketAnswer> => {
      if (request.kind === 'status') return { reply: { ok: true, ...status() } };
      const { stateDir } = settings;
      const peer = await peerOf(request, { stateDir, nonce, platform: host.platform, processes: hosted.processes });
      if (peer.kind === 'unproven') return { reply: { ok: false, why: UNPROVEN } };
      if (request.kind === 'attach') return clients.attach(request, peer);
      if (peer.kind === 'inside') {
        const principal = nestedIn(peer.session ?? peer.named[0] ?? 'unknown').id;
        engine.audit.record({ kind: 'server', who: 'policy', what: request.kind, outcome: 'refused', principal });
        return {
          reply: {
            ok: false,
            why: refusedBelowSession(request.kind === 'terminal' ? 'This command' : `hub ${request.kind}`),
          },
        };
      }
      switch (request.kind) {
        case 'terminal':
          return clients.openTerminal(request, peer);
        case 'store':
          return { reply: { ok: true, version, ...(settings.store !== undefined && { store: settings.store }) } };
        case 'sign-in':
          return { reply: { ok: true, version, code: codes.issue() } };
        case 'stop':
        case 'leave':
        case 'restart':
          requestStop(request.kind);
          // For a restart, which would otherwise lose what the hub was given.
          return { reply: { ok: true, version, secrets: secretsOf(settings) } };
      }
    };
    const status = (): HubStatus => ({
      pid: process.pid,
      version,
      url: http.url,
      startedAt,
      ...engine.counts,
      connections: clients.count,
      argv,
      isService: host.env[SERVICE_VARIABLE] !== undefined,
      keeper: keeperOf(kept, host.env),
    });
    const socket = await openSocket(settings, host, instance.secret, answer);
    undo.push(() => socket.close());

    await instance.announce({ pid: process.pid, url: http.url, socket: socket.path, version });
    hosted.preload();
    let closing: Promise<void> | undefined;
    return {
      url: http.url,
      socket: socket.path,
      stopRequested,
      close: (processes = 'end') => {
        if (!closing) processesAtEnd = processes;
        return (closing ??= closeAll());
      },
    };
  } catch (error) {
    // A hub that cannot start ends nothing that another one started.
    processesAtEnd = 'keep';
    await closeAll();
    throw error;
  }
}

/** All that the keeper needs of the hub's environment. */
const KEEPER_VARIABLES = ['HOME', 'TMPDIR', 'TEMP', 'TMP'];

/** Outside the unit of the hub: its service manager ends everything that is in there together with the hub. */
async function startKeeperUnit(
  program: string,
  stateDir: string,
  socket: string,
  log: HostContext['log'],
): Promise<boolean> {
  const unit = ['--user', '--collect', '--quiet', '--description', 'Keeps Claude Code running for claude-code-mcp'];
  try {
    await promisify(execFile)('systemd-run', [...unit, process.execPath, program, stateDir, socket]);
    return true;
  } catch (error) {
    log('warn', `sessions will end with this hub: systemd-run did not start a unit for them: ${messageOf(error)}`);
    return false;
  }
}

/** Undefined if there can be none: the hub then works without. */
async function openKeeper(
  { stateDir, keepFor }: Settings,
  { platform, log, env }: HostContext,
  { journal }: HubStorage,
  program: string,
  stateKey: string,
): Promise<KeptProcesses | undefined> {
  const { KeptProcesses, keeperSocket } = await import('../keeper/kept-processes.ts');
  const place: SocketHost = { stateDir, platform, temporaryDir: os.tmpdir(), uid: process.getuid?.() };
  const hubSocket = socketPath(place);
  await makePrivateDirectory(hubSocket, place);
  const kept = new KeptProcesses({
    stateDir,
    socket: keeperSocket(hubSocket),
    program,
    keepMs: keepFor,
    env: Object.fromEntries(KEEPER_VARIABLES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
    ...(env[SERVICE_VARIABLE] !== undefined &&
      platform === 'linux' && { startUnit: () => startKeeperUnit(program, stateDir, keeperSocket(hubSocket), log) }),
    everStored: () => journal.everStored(),
    log,
  });
  try {
    await kept.open(createHash('sha256').update(stateKey).digest('hex').slice(0, 16));
    return kept;
  } catch (error) {
    log('warn', `sessions will end with this hub: ${messageOf(error)}`);
    return undefined;
  }
}

/** Whether the sessions outlive this hub, as far as can be seen. */
function keeperOf(kept: KeptProcesses | undefined, env: NodeJS.ProcessEnv): NonNullable<HubStatus['keeper']> {
  const pid = kept?.keeperPid;
  if (pid === undefined) return { endsWithHub: 'no process keeps them' };
  const own = env[SERVICE_VARIABLE] === undefined ? '' : cgroupOf(process.pid);
  return own !== '' && cgroupOf(pid) === own
    ? { endsWithHub: "the service manager ends what is in the hub's unit" }
    : { pid };
}

/** Whether anyone but this user can start a session. */
async function hasCallersOverHttp({ oauthIssuer }: Settings, store: HubStorage['store']): Promise<boolean> {
  if (oauthIssuer !== undefined) return true;
  const now = Date.now();
  return (await store.tokens()).some(
    ({ kind, role, revokedAt, expiresAt = Number.POSITIVE_INFINITY }) =>
      kind === 'token' && rolesThatMay('drive').includes(role) && revokedAt === undefined && expiresAt > now,
  );
}

/** On a store that others may share. */
async function joinFleet({ store, by, journal }: HubStorage): Promise<Fleet | undefined> {
  if (store.kind !== 'postgres') return undefined;
  const { joinFleet: join } = await import('../fleet/other-hubs.ts');
  return join({ store, by, journal });
}

/** Transcripts are mirrored only where sessions can move. */
async function openMirrors(
  { sharedWorkspace }: Settings,
  host: HostContext,
  { store, by, journal }: HubStorage,
): Promise<TranscriptMirrors | undefined> {
  if (sharedWorkspace === undefined) return undefined;
  const { StoredTranscripts } = await import('../fleet/transcript-mirrors.ts');
  const { log } = host;
  return new StoredTranscripts({ store, by, configDir: claudeConfigDir(host), stored: () => journal.stored(), log });
}

async function startNotifier(
  { notify, notifySecret }: Settings,
  services: Omit<NotifierServices, 'target'>,
): Promise<Notifier | undefined> {
  if (notify === undefined) return undefined;
  const notifier = new Notifier({ ...services, target: notifyTarget(notify, notifySecret) });
  await notifier.start();
  return notifier;
}

async function openSocket(
  { stateDir }: Settings,
  { platform, log }: HostContext,
  secret: string,
  answer: (request: HubRequest, nonce: string) => Promise<SocketAnswer>,
): Promise<SocketServer & { path: string }> {
  const place: SocketHost = { stateDir, platform, temporaryDir: os.tmpdir(), uid: process.getuid?.() };
  const path = socketPath(place);
  await makePrivateDirectory(path, place);
  const server = await listenOnSocket({ path, secret, isPipe: platform === 'win32', answer, log });
  return { ...server, path };
}

import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { readHubRecord, type HubRecord } from '../../config/hub-record.ts';
import { isLoopback } from '../../config/setting-kinds.ts';
import type { Settings } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/bad-input.ts';
import { writeSignInPage } from '../../hub/auth/sign-in.ts';
import { localTime } from '../../text/columns.ts';
import { printable } from '../../text/invisible.ts';
import { askHub, HubUnavailable } from '../../transports/attach/connect-hub.ts';
import type { HubStatus } from '../../transports/attach/protocol.ts';
import type { HubCommandContext } from './run-hub.ts';

export type HubState =
  | { readonly kind: 'running'; readonly record: HubRecord; readonly status: HubStatus }
  | { readonly kind: 'stopped' }
  /** There is a record, but nothing responds. */
  | { readonly kind: 'unreachable'; readonly record: HubRecord; readonly why: string };

export async function hubState(stateDir: string): Promise<HubState> {
  const record = readHubRecord(stateDir);
  if (!record) return { kind: 'stopped' };
  try {
    return { kind: 'running', record, status: await askHub<HubStatus>(record, stateDir, 'status') };
  } catch (error) {
    if (!(error instanceof HubUnavailable)) throw error;
    return { kind: 'unreachable', record, why: error.message };
  }
}

/**
 * The store that the hub of this state directory uses: a token in another one would be of no use. Where no hub runs, the
 * one that the settings name.
 */
export async function storeInUse({
  stateDir,
  store,
}: Pick<Settings, 'stateDir' | 'store'>): Promise<string | undefined> {
  const record = readHubRecord(stateDir);
  if (!record) return store;
  let used: string | undefined;
  try {
    ({ store: used } = await askHub<{ store?: string }>(record, stateDir, 'store'));
  } catch (error) {
    if (error instanceof HubUnavailable) return store;
    throw error;
  }
  if (store !== undefined && store !== used)
    throw new SettingsError(
      'The hub that is running uses another store than --store names; leave it out, or stop the hub.',
    );
  return used;
}

/** The record of a hub that responds, or undefined after reporting that there is none. */
export async function requireHub(
  stateDir: string,
  remedy = ' Start one with: claude-code-mcp hub start',
): Promise<HubRecord | undefined> {
  const state = await hubState(stateDir);
  if (state.kind === 'running') return state.record;
  process.stderr.write(
    state.kind === 'unreachable'
      ? printable`The hub does not respond: ${state.why}.\n`
      : `No hub is running.${remedy}\n`,
  );
  return undefined;
}

/** As systemctl has it. */
const NOT_RUNNING = 3;

export async function showStatus({ settings }: HubCommandContext, options: readonly string[]): Promise<number> {
  const state = await hubState(settings.stateDir);
  if (options.includes('--json')) {
    const {
      argv: _argv,
      ok: _ok,
      ...status
    } = (state.kind === 'running' ? state.status : {}) as Record<string, unknown>;
    process.stdout.write(`${JSON.stringify({ running: state.kind === 'running', ...status }, null, 2)}\n`);
  } else process.stdout.write(textOf(state));
  return state.kind === 'running' ? 0 : NOT_RUNNING;
}

function textOf(state: Awaited<ReturnType<typeof hubState>>): string {
  switch (state.kind) {
    case 'stopped':
      return 'No hub is running. Start one with: claude-code-mcp hub start\n';
    case 'unreachable':
      return printable`The hub does not respond: ${state.why}.\n`;
    case 'running': {
      const { pid, version, url, startedAt, sessions, working, waiting = 0, connections } = state.status;
      const { keeper = { endsWithHub: 'its version is too old' } } = state.status;
      return [
        printable`The hub is running: ${url}`,
        printable`  version   ${version}, pid ${String(pid)}, since ${localTime(Date.parse(startedAt))}`,
        `  sessions  ${String(sessions)}, ${String(working)} working, ${String(waiting)} waiting for an answer`,
        `  clients   ${String(connections)} attached`,
        'pid' in keeper
          ? `  keeper    pid ${String(keeper.pid)}: sessions go on without the hub`
          : printable`  keeper    sessions end with the hub: ${keeper.endsWithHub}`,
        '',
      ].join('\n');
    }
  }
}

/** Opens the dashboard, signed in, or prints the link to it. A code is valid for one sign-in within two minutes. */
export async function openDashboard(
  { settings, platform }: HubCommandContext,
  options: readonly string[],
): Promise<number> {
  const record = await requireHub(settings.stateDir);
  if (!record) return 1;
  const { code } = await askHub<{ code: string }>(record, settings.stateDir, 'sign-in');
  // In the fragment, which no server or its log ever sees.
  const link = `${record.url}/#code=${code}`;
  if (options.includes('--qr')) {
    const { renderUnicodeCompact } = await import('uqr');
    const picture = renderUnicodeCompact(link, { border: 2 });
    const { hostname } = new URL(record.url);
    const hint = isLoopback(hostname.replace(/^\[|\]$/g, ''))
      ? 'A phone cannot reach this address, which is that of this machine itself: see “Access from other machines” in docs/http.md.\n'
      : '';
    process.stdout.write(`${picture}\n${link}\nScan it within two minutes; it works once.\n${hint}`);
    return 0;
  }
  if (options.includes('--print')) {
    process.stdout.write(`${link}\n`);
    return 0;
  }
  const page = await writeSignInPage(settings.stateDir, link, code);
  if (await openInBrowser(page, platform)) {
    // The hub removes the page when its code is used or expires. A containerised browser may not be able to read it.
    process.stdout.write(`Opened ${record.url} in the browser. If it did not come up: hub open --print\n`);
  } else {
    await rm(page, { force: true });
    process.stdout.write(`Open this link within two minutes; it works once:\n${link}\n`);
  }
  return 0;
}

function openInBrowser(page: string, platform: NodeJS.Platform): Promise<boolean> {
  const [program, ...args] = openerOf(platform);
  if (program === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    const child = spawn(program, [...args, page], { stdio: 'ignore', detached: true, windowsHide: true });
    const done = (opened: boolean): void => {
      clearTimeout(timer);
      child.unref();
      resolve(opened);
    };
    // One that stays in the foreground has opened it.
    const timer = setTimeout(() => done(true), 2_000);
    child.once('error', () => done(false));
    child.once('exit', (code) => done(code === 0));
  });
}

function openerOf(platform: NodeJS.Platform): string[] {
  switch (platform) {
    case 'darwin':
      return ['open'];
    case 'win32':
      return ['rundll32', 'url.dll,FileProtocolHandler'];
    default:
      return ['xdg-open'];
  }
}

import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { hubRecordFile, hubSecretFile } from '../../config/hub-record.ts';
import { loadSettings, type SettingsSource } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/settings-error.ts';
import { messageOf } from '../../errors/errors.ts';
import { hubState } from '../hub/running-hub.ts';
import { ok, problem, skipped, type Finding } from './finding.ts';

const ANSWER_WITHIN_MS = 3_000;
const MOST_SKEW_MS = 60_000;
const SOON_MS = 14 * 86_400_000;
const OTHERS = 0o077;

/** Whether the hub of this user runs, can be reached, and keeps its files to itself. One finding, or one per problem. */
export async function* checkHub(source: SettingsSource, version: string): AsyncGenerator<Finding> {
  const check = 'Hub';
  let settings;
  try {
    settings = loadSettings(source, {}, 'hub');
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    yield problem(check, error.message, 'Correct it where the hub is started.');
    return;
  }
  yield* checkFiles(settings.stateDir, source.platform);
  if (settings.tlsCert !== undefined) yield await checkCertificate(settings.tlsCert);
  const state = await hubState(settings.stateDir);
  switch (state.kind) {
    case 'stopped':
      yield skipped(check, 'none runs: sessions end with the client that started them');
      return;
    case 'unreachable':
      yield problem(check, state.why, 'Start it again: claude-code-mcp hub start');
      return;
    case 'running': {
      const { url, version: running, pid } = state.status;
      const other = running === version ? '' : `; this is ${version}, "hub restart" brings them together`;
      const answer = await askHealth(url);
      yield answer ?? ok(check, `${running} at ${url} (pid ${String(pid)})${other}`);
    }
  }
}

/** What only its user may read: whoever reads these can act for the user. */
async function* checkFiles(stateDir: string, platform: NodeJS.Platform): AsyncGenerator<Finding> {
  if (platform === 'win32') return;
  for (const file of [hubRecordFile(stateDir), hubSecretFile(stateDir), path.join(stateDir, 'hub.db')]) {
    const found = await stat(file).catch(() => undefined);
    if (found && (found.mode & OTHERS) !== 0)
      yield problem('Hub files', `${file} can be read by others`, `Close it to them: chmod 600 ${file}`);
  }
}

/** Undefined if the hub answers over HTTP and agrees on the time of day. */
async function askHealth(url: string): Promise<Finding | undefined> {
  const check = 'Hub over HTTP';
  try {
    const response = await fetch(new URL('/healthz', url), { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    if (!response.ok)
      return problem(check, `${url} answers ${String(response.status)}`, 'Look at: claude-code-mcp hub logs');
    const skew = Math.abs(Date.parse(response.headers.get('date') ?? '') - Date.now());
    return skew > MOST_SKEW_MS
      ? problem(check, `its clock is ${String(Math.round(skew / 1000))} s off`, 'Set the clock: tokens expire by it.')
      : undefined;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    return problem(check, `${url} cannot be reached: ${messageOf(cause)}`, 'Look at: claude-code-mcp hub logs');
  }
}

async function checkCertificate(file: string): Promise<Finding> {
  const check = 'TLS certificate';
  try {
    const { validTo, subject } = new X509Certificate(await readFile(file));
    const left = Date.parse(validTo) - Date.now();
    if (left > SOON_MS) return ok(check, `${subject.replaceAll('\n', ', ')}, valid until ${validTo}`);
    return problem(check, `${file} ${left < 0 ? 'expired' : 'expires'} on ${validTo}`, 'Renew it.');
  } catch (error) {
    return problem(check, `${file}: ${messageOf(error)}`, 'Give --tls-cert a PEM file that can be read.');
  }
}

import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { get as getOverTls } from 'node:https';
import path from 'node:path';
import type { TLSSocket } from 'node:tls';
import { hubRecordFile, hubSecretFile } from '../../config/hub-record.ts';
import { loadSettings, type Settings, type SettingsSource } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/bad-input.ts';
import { messageOf } from '../../errors/errors.ts';
import { hubState } from '../hub/running-hub.ts';
import { CLIENTS, type InstallClient } from '../install/clients.ts';
import { hasToken } from '../install/server-entry.ts';
import { ok, problem, skipped, type Finding } from './check-setup.ts';

const MAX_SKEW_MS = 60_000;
const SOON_MS = 14 * 86_400_000;
const OTHERS = 0o077;

/** Whether this user's hub is running, reachable, and keeps its files private. One finding, or one per problem. */
export async function* checkHub(
  source: SettingsSource,
  version: string,
  now: () => number = Date.now,
): AsyncGenerator<Finding> {
  const check = 'Hub';
  let settings;
  try {
    settings = loadSettings(source, {}, 'hub');
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    yield problem(check, error.message, 'Correct it where the hub is started.');
    return;
  }
  yield* checkFiles(settings, source);
  if (settings.tlsCert !== undefined) yield await checkCertificateFile(settings.tlsCert, now());
  const state = await hubState(settings.stateDir);
  switch (state.kind) {
    case 'stopped':
      yield skipped(check, 'not running: sessions end with the client that started them');
      return;
    case 'unreachable':
      yield problem(check, state.why, 'Start it again: claude-code-mcp hub start');
      return;
    case 'running': {
      const { url, version: running, pid } = state.status;
      const other = running === version ? '' : `; this is ${version}, run "hub restart" to update it`;
      const wrong = await checkAnswer(url, now(), settings.tlsCert !== undefined);
      if (wrong.length > 0) yield* wrong;
      else yield ok(check, `${running} at ${url} (pid ${String(pid)})${other}`);
    }
  }
}

/** What only its user may read: anyone who can read these can act for the user. */
async function* checkFiles({ stateDir, tlsKey }: Settings, source: SettingsSource): AsyncGenerator<Finding> {
  if (source.platform === 'win32') return;
  const own = ['hub.db', 'hub.db-wal', 'hub.log'].map((name) => path.join(stateDir, name));
  for (const file of [
    hubRecordFile(stateDir),
    hubSecretFile(stateDir),
    ...own,
    ...(tlsKey === undefined ? [] : [tlsKey]),
  ])
    if (await isReadableByOthers(file))
      yield problem('Hub files', `${file} is readable by other users`, `Make it private: chmod 600 ${file}`);
  for (const client of Object.values(CLIENTS) as InstallClient[]) {
    const file = client.file(source);
    if ((await isReadableByOthers(file)) && hasToken(await readFile(file, 'utf8').catch(() => '')))
      yield problem(
        'Tokens',
        `${file}, with a hub token for ${client.title}, is readable by other users`,
        `Make it private: chmod 600 ${file}`,
      );
  }
}

async function isReadableByOthers(file: string): Promise<boolean> {
  const found = await stat(file).catch(() => undefined);
  return found !== undefined && (found.mode & OTHERS) !== 0;
}

/** What is wrong with how the hub answers over HTTP. */
export async function checkAnswer(url: string, now: number, knowsCertificate = false): Promise<Finding[]> {
  const check = 'Hub over HTTP';
  try {
    const { status, date, certificate } = await probeHub(url);
    if (status !== 200) return [problem(check, `${url} answers ${String(status)}`, 'See: claude-code-mcp hub logs')];
    const skew = Math.abs(date - now);
    return [
      ...(skew > MAX_SKEW_MS
        ? [
            problem(
              check,
              `its clock is ${String(Math.round(skew / 1000))} s off`,
              'Set the clock: token expiry depends on it.',
            ),
          ]
        : []),
      ...(certificate && !knowsCertificate
        ? [certificateFinding(certificate, url, now)].filter(({ status: found }) => found === 'problem')
        : []),
    ];
  } catch (error) {
    return [problem(check, `${url} cannot be reached: ${messageOf(error)}`, 'See: claude-code-mcp hub logs')];
  }
}

async function checkCertificateFile(file: string, now: number): Promise<Finding> {
  try {
    return certificateFinding(new X509Certificate(await readFile(file)), file, now);
  } catch (error) {
    return problem('TLS certificate', `${file}: ${messageOf(error)}`, 'Pass --tls-cert a readable PEM file.');
  }
}

function certificateFinding({ validFrom, validTo, subject }: X509Certificate, where: string, now: number): Finding {
  const check = 'TLS certificate';
  if (Date.parse(validFrom) > now)
    return problem(check, `${where}: not valid before ${validFrom}`, 'Set the clock, or wait.');
  const left = Date.parse(validTo) - now;
  if (left > SOON_MS) return ok(check, `${subject.replaceAll('\n', ', ')}, valid until ${validTo}`);
  return problem(
    check,
    `${where}: ${left < 0 ? 'expired' : 'expires'} on ${validTo}`,
    'Renew it, then: claude-code-mcp hub restart',
  );
}

const ANSWER_WITHIN_MS = 3_000;

export interface ProbedHub {
  readonly status: number;
  /** What time it is there. */
  readonly date: number;
  /** What it shows its clients; undefined without TLS. */
  readonly certificate: X509Certificate | undefined;
}

/**
 * Checks a hub's health. Its certificate is inspected, not relied on: it names the public host, which this machine may
 * know by another name, and nothing secret is sent.
 */
function probeHub(url: string): Promise<ProbedHub> {
  return new Promise((resolve, reject) => {
    const target = new URL('/healthz', url);
    const isTls = target.protocol === 'https:';
    const answered = (response: IncomingMessage): void => {
      response.resume();
      resolve({
        status: response.statusCode ?? 0,
        date: Date.parse(response.headers.date ?? ''),
        certificate: isTls ? (response.socket as TLSSocket).getPeerX509Certificate() : undefined,
      });
    };
    const options = { agent: false, timeout: ANSWER_WITHIN_MS } as const;
    const request = isTls
      ? getOverTls(target, { ...options, rejectUnauthorized: false }, answered)
      : getPlain(target, options, answered);
    request.once('timeout', () => request.destroy(new Error(`no answer within ${String(ANSWER_WITHIN_MS / 1000)} s`)));
    request.once('error', reject);
  });
}

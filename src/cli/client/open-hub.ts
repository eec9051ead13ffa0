import { TOKEN_VARIABLE } from '../../config/child-environment.ts';
import { readHubRecord } from '../../config/hub-record.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/settings-error.ts';
import { DomainError } from '../../errors/errors.ts';
import { attachToHub, HubRefused, HubUnavailable } from '../../transports/attach/connect-hub.ts';
import { attachRequest, type HubClientContext } from '../serve/find-hub.ts';
import { addressOfUrl, HubApi, HubUnreachable, type HubAddress } from './hub-api.ts';

export interface OpenHubOptions {
  /** As the user would type it. */
  readonly command: string;
  readonly settings: Settings;
  readonly source: HubClientContext;
  /** What `--url` says. */
  readonly url: string | undefined;
  readonly isInteractive: boolean;
}

/**
 * The hub of this user over its socket, or any hub with a token. Over the socket the hub itself finds out whether this
 * process runs inside a session and at a terminal; what is refused here is only refused sooner.
 */
export function openHub(options: OpenHubOptions): { readonly api: HubApi; readonly hasToken: boolean } {
  const address = addressOf(options);
  return { api: new HubApi(address), hasToken: address.kind === 'url' };
}

function addressOf({ command, settings, source, url, isInteractive }: OpenHubOptions): HubAddress {
  const token = source.env[TOKEN_VARIABLE]?.trim();
  if (url !== undefined && !token)
    throw new SettingsError(`--url needs a token in ${TOKEN_VARIABLE}; "token create" on that machine makes one.`);
  if (url !== undefined && token) return addressOfUrl(url, token);
  const { stateDir } = settings;
  if (!token && runsBelowSession(settings))
    throw new DomainError('PERMISSION_DENIED', refusedBelowSession(`claude-code-mcp ${command}`));
  const running = readHubRecord(stateDir);
  if (!running) throw new DomainError('UNAVAILABLE', 'No hub is running. Start one with: claude-code-mcp hub start');
  if (token) return { kind: 'url', url: running.url, token };
  const request = { ...attachRequest(settings, source), kind: 'terminal' as const, isInteractive };
  return {
    kind: 'socket',
    async connect() {
      // After a restart it may be elsewhere.
      const record = readHubRecord(stateDir);
      if (!record) throw new HubUnreachable('it is not running');
      try {
        return { socket: (await attachToHub(record, stateDir, request)).socket, url: record.url };
      } catch (error) {
        if (error instanceof HubRefused)
          throw new DomainError('PERMISSION_DENIED', `The hub refused: ${error.message}`);
        throw error instanceof HubUnavailable ? new HubUnreachable(error.message) : error;
      }
    },
  };
}

import type {
  AnsweredRequest,
  AnswerBody,
  ApiError,
  ApiMe,
  ApiRequest,
  ApiSessionDetail,
  ApplyAnswer,
  ApplyBody,
  CostsAnswer,
  DirectoriesAnswer,
  DiscardAnswer,
  DiscardBody,
  ForkBody,
  MessageBody,
  ModelsAnswer,
  RequestOutcomeView,
  RequestsPage,
  RewindAnswer,
  RewindBody,
  SessionsPage,
  SignInAnswer,
  SignInBody,
  StartBody,
  StopAnswer,
  TurnAnswer,
} from '../../../src/schema/api.ts';
import type {
  PushAnswer,
  PushSubscriptionAnswer,
  PushSubscriptionBody,
  AuditPage,
  CreatedToken,
  MadeRules,
  TokenBody,
  TokensAnswer,
  PacksAnswer,
  ReplayAnswer,
  ReplayBody,
  RuleAnswer,
  RuleBody,
  RulePatchBody,
  RulesAnswer,
  RulesBody,
} from '../../../src/schema/api-admin.ts';
import type { DiffAnswer, EventsPage, ImagesAnswer } from '../../../src/schema/api-events.ts';
import type { Stale } from '../../../src/schema/results.ts';
import { signedOut, signIn } from './sign-in.ts';

/** Relative to the page: a proxy may serve the hub below a path. */
const BASE = new URL('./api/v1/', document.baseURI);
const PATIENCE_MS = 60_000;

/** A failed call. `code` is `OFFLINE` if it is unknown whether it arrived. */
export class CallFailure extends Error {
  readonly code: ApiError['error']['code'] | 'OFFLINE';
  readonly status: number;
  /** Who decided what, if a request was already settled. */
  readonly outcome: RequestOutcomeView | undefined;
  /** What has changed since a request was asked, if allowing it needs a second look. */
  readonly stale: Stale | undefined;

  constructor(
    code: CallFailure['code'],
    message: string,
    status = 0,
    { outcome, stale }: Pick<Partial<ApiError>, 'outcome' | 'stale'> = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.outcome = outcome;
    this.stale = stale;
  }

  /** Resending it with the same key may succeed, and does nothing twice. */
  get mayPass(): boolean {
    return this.code === 'OFFLINE' || this.code === 'UNAVAILABLE' || this.code === 'TOO_MANY_REQUESTS';
  }
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

interface Call {
  readonly query?: Query;
  readonly body?: object;
  /** The same for every attempt at one write. */
  readonly idempotencyKey?: string;
}

export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function apiUrl(path: string, query: Query = {}): URL {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value));
  }
  return url;
}

export function credentials(): Record<string, string> {
  return signIn.value.state === 'in' ? { 'X-Claude-Code-Key': signIn.value.key } : {};
}

async function call<Answer>(method: string, path: string, { query, body, idempotencyKey }: Call = {}): Promise<Answer> {
  const isWrite = method !== 'GET';
  let response: Response;
  let answer: unknown;
  try {
    response = await fetch(apiUrl(path, query), {
      method,
      headers: {
        ...credentials(),
        ...(body && { 'Content-Type': 'application/json' }),
        ...(isWrite && { 'Idempotency-Key': idempotencyKey ?? newKey() }),
      },
      ...(body && { body: JSON.stringify(body) }),
      cache: 'no-store',
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const text = await response.text();
    answer = text === '' ? undefined : JSON.parse(text);
  } catch (error) {
    throw new CallFailure('OFFLINE', offlineWords(error));
  }
  if (response.ok) return answer as Answer;
  throw refusal(response.status, answer);
}

function offlineWords(error: unknown): string {
  return error instanceof SyntaxError ? 'The response did not come from the hub.' : 'The hub cannot be reached.';
}

function refusal(status: number, answer: unknown): CallFailure {
  const { error, ...details } = (answer ?? {}) as Partial<ApiError>;
  if (status === 401 && signIn.value.state === 'in') signedOut('Your sign-in has ended: it expired or was revoked.');
  if (error) return new CallFailure(error.code, error.message, status, details);
  const away = status === 502 || status === 503 || status === 504;
  return new CallFailure(
    away ? 'UNAVAILABLE' : 'INTERNAL',
    away ? `The hub is not available right now (${status}).` : `The hub answered ${status}.`,
    status,
  );
}

const of = (sessionId: string) => `sessions/${encodeURIComponent(sessionId)}`;

export const api = {
  exchange: (body: SignInBody) => call<SignInAnswer>('POST', 'sign-in', { body }),
  signOut: () => call('DELETE', 'sign-in'),
  me: () => call<ApiMe>('GET', 'me'),

  sessions: (query: Query) => call<SessionsPage>('GET', 'sessions', { query }),
  session: (id: string) => call<ApiSessionDetail>('GET', of(id)),
  events: (id: string, query: Query) => call<EventsPage>('GET', `${of(id)}/events`, { query }),
  images: (id: string, event: number) => call<ImagesAnswer>('GET', `${of(id)}/events/${event}/images`),
  models: () => call<ModelsAnswer>('GET', 'models'),
  diff: (id: string, query: Query) => call<DiffAnswer>('GET', `${of(id)}/diff`, { query }),
  requests: (query: Query) => call<RequestsPage>('GET', 'requests', { query }),
  request: (id: string) => call<ApiRequest>('GET', `requests/${encodeURIComponent(id)}`),
  push: () => call<PushAnswer>('GET', 'push'),
  audit: (query: Query) => call<AuditPage>('GET', 'audit', { query }),
  tokens: () => call<TokensAnswer>('GET', 'tokens'),
  costs: () => call<CostsAnswer>('GET', 'costs'),
  directories: (path: string) => call<DirectoriesAnswer>('GET', 'directories', { query: { path } }),
  signInCode: () => call<{ code: string }>('POST', 'sign-in-codes', { body: {} }),
  rename: (id: string, title: string) => call<StopAnswer>('POST', `${of(id)}/rename`, { body: { title } }),
  archive: (id: string, archived: boolean) => call<StopAnswer>('POST', `${of(id)}/archive`, { body: { archived } }),
  rules: () => call<RulesAnswer>('GET', 'rules'),
  rulePacks: () => call<PacksAnswer>('GET', 'rules/packs'),
  replayRule: (body: ReplayBody) => call<ReplayAnswer>('POST', 'rules/replay', { body }),
  createRule: (body: RuleBody, idempotencyKey: string) => call<RuleAnswer>('POST', 'rules', { body, idempotencyKey }),
  createRules: (body: RulesBody, idempotencyKey: string) =>
    call<MadeRules>('POST', 'rules/batch', { body, idempotencyKey }),
  changeRule: (id: string, body: RulePatchBody) =>
    call<RuleAnswer>('PATCH', `rules/${encodeURIComponent(id)}`, { body }),
  removeRule: (id: string) => call<RuleAnswer>('DELETE', `rules/${encodeURIComponent(id)}`),

  start: (body: StartBody, idempotencyKey: string) => call<TurnAnswer>('POST', 'sessions', { body, idempotencyKey }),
  message: (id: string, body: MessageBody, idempotencyKey: string) =>
    call<TurnAnswer>('POST', `${of(id)}/messages`, { body, idempotencyKey }),
  changeMessage: (id: string, message: string, prompt: string) =>
    call<StopAnswer>('PATCH', `${of(id)}/messages/${encodeURIComponent(message)}`, { body: { prompt } }),
  withdrawMessage: (id: string, message: string) =>
    call<StopAnswer>('DELETE', `${of(id)}/messages/${encodeURIComponent(message)}`),
  fork: (id: string, body: ForkBody, idempotencyKey: string) =>
    call<TurnAnswer>('POST', `${of(id)}/fork`, { body, idempotencyKey }),
  interrupt: (id: string) => call<StopAnswer>('POST', `${of(id)}/interrupt`, { body: {} }),
  cancel: (id: string) => call<StopAnswer>('POST', `${of(id)}/cancel`, { body: {} }),
  rewind: (id: string, body: RewindBody) => call<RewindAnswer>('POST', `${of(id)}/rewind`, { body }),
  apply: (id: string, body: ApplyBody, idempotencyKey: string) =>
    call<ApplyAnswer>('POST', `${of(id)}/apply`, { body, idempotencyKey }),
  discard: (id: string, body: DiscardBody, idempotencyKey: string) =>
    call<DiscardAnswer>('POST', `${of(id)}/discard`, { body, idempotencyKey }),
  answer: (requestId: string, body: AnswerBody, idempotencyKey: string) =>
    call<AnsweredRequest>('POST', `requests/${encodeURIComponent(requestId)}/answer`, { body, idempotencyKey }),
  subscribe: (body: PushSubscriptionBody) => call<PushSubscriptionAnswer>('POST', 'push/subscriptions', { body }),
  unsubscribe: (id: string) => call('DELETE', `push/subscriptions/${encodeURIComponent(id)}`),
  testPush: (id: string) => call('POST', `push/subscriptions/${encodeURIComponent(id)}/test`, { body: {} }),
  createToken: (body: TokenBody, idempotencyKey: string) =>
    call<CreatedToken>('POST', 'tokens', { body, idempotencyKey }),
  revokeToken: (id: string) => call('DELETE', `tokens/${encodeURIComponent(id)}`),
};

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

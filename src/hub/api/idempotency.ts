import { DomainError } from '../../errors/errors.ts';
import type { RouteRequest, RouteResponse } from '../http/route.ts';
import type { Once } from '../once.ts';
import type { ApiRoute } from './define-route.ts';

interface Answer {
  readonly status: number;
  readonly json?: unknown;
}

/** Runs a write once per `Idempotency-Key`. */
export async function onceFor(
  once: Once,
  { operation, repeat }: ApiRoute,
  { principal, path, body }: RouteRequest,
  key: string,
  run: () => Promise<RouteResponse>,
): Promise<RouteResponse> {
  const call = { keyName: 'Idempotency-Key', key, principal: principal.id, operation, path, input: body };
  const { answer, isRepeat } = await once.run<Answer>(
    call,
    async () => plain(await run()),
    (one) => (repeat === 'same-answer' || one.status >= 400 ? one : { status: one.status }),
  );
  if (isRepeat && repeat === 'refused' && answer.status < 400)
    throw new DomainError('INVALID_ARGUMENT', 'This was already done, and its answer is shown only once.');
  return answer;
}

/** Only JSON responses are kept; a write returns nothing else. */
function plain(response: RouteResponse): Answer {
  if (!('status' in response)) throw new TypeError('A write cannot return a stream.');
  return { status: response.status, ...('json' in response && { json: response.json }) };
}

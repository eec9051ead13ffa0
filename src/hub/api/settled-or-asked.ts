import type { Store } from '../../store/contract.ts';

/** Requests that the server itself makes on behalf of a caller, by their tool name. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set(['Rewind', 'Apply', 'Discard']);

/** Waits for an action to finish, or for the request that a person must allow first. */
export async function settledOrAsked<T>(
  store: Pick<Store, 'inbox' | 'subscribe'>,
  sessionId: string,
  action: Promise<T>,
): Promise<{ settled: T } | { asked: string }> {
  let stop = (): void => {};
  const asked = new Promise<{ asked: string }>((resolve) => {
    const look = async (): Promise<void> => {
      const { items } = await store.inbox({ sessionId, limit: 50 });
      const own = items.find(({ ask }) => OWN_TOOLS.has(ask['toolName']));
      if (own) resolve({ asked: own.id });
    };
    // An unavailable store is read again at its next wake-up; the action itself still finishes.
    stop = store.subscribe(() => void look().catch(() => undefined));
    void look().catch(() => undefined);
  });
  // A caller that was told to wait does not hear about its failure here, and no one else does.
  action.catch(() => undefined);
  try {
    return await Promise.race([action.then((settled) => ({ settled })), asked]);
  } finally {
    stop();
  }
}

import type { Store } from '../../store/contract.ts';

/** Requests that the server itself makes for a caller, by the name they are asked under. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set(['Rewind', 'Apply', 'Discard']);

/** Waits for an action to end, or for the request that a person has to allow first. */
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
    // A store that is away is asked again at its next wake-up; the action itself still ends.
    stop = store.subscribe(() => void look().catch(() => undefined));
    void look().catch(() => undefined);
  });
  // Whoever was told to wait does not hear of its failure here, and nobody else does.
  action.catch(() => undefined);
  try {
    return await Promise.race([action.then((settled) => ({ settled })), asked]);
  } finally {
    stop();
  }
}

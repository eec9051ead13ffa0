/** What a server does for its client, for metrics. */
export type McpOperation =
  | {
      readonly kind: 'request';
      readonly method: string;
      readonly tool?: string;
      /** What went wrong: `tool_error`, or the protocol's error code. */
      readonly error?: string;
      readonly seconds: number;
    }
  /** A connection has ended. */
  | { readonly kind: 'connection'; readonly seconds: number };

export type Observer = (operation: McpOperation) => void;

/** Runs a request and reports how long it took. */
export async function observed<T extends object>(
  observe: Observer | undefined,
  { method, tool }: { readonly method: string; readonly tool?: string },
  run: () => Promise<T>,
): Promise<T> {
  if (!observe) return run();
  const begin = performance.now();
  const tell = (error?: string): void =>
    observe({
      kind: 'request',
      method,
      ...(tool !== undefined && { tool }),
      ...(error !== undefined && { error }),
      seconds: (performance.now() - begin) / 1000,
    });
  try {
    const result = await run();
    tell('isError' in result && result.isError === true ? 'tool_error' : undefined);
    return result;
  } catch (error) {
    const { code } = error as { code?: unknown };
    tell(typeof code === 'number' ? String(code) : '_OTHER');
    throw error;
  }
}

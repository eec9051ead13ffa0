/** Time as the engine sees it, so that tests can let hours pass without waiting. */
export interface Clock {
  now(): number;
  /** Calls back once after `ms`, without keeping the process alive. Returns how to call it off. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};

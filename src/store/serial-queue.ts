/** Runs one piece of work after another, in the order in which they arrived. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(work);
    this.#tail = result.catch(() => {});
    return result;
  }

  /** When everything queued so far is done. */
  async idle(): Promise<void> {
    await this.#tail;
  }
}

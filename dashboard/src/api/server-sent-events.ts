export interface ServerSentEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Reads `text/event-stream`, in whatever pieces it arrives. */
export class EventParser {
  #rest = '';
  #id: string | undefined;
  #event = '';
  #data: string[] = [];

  push(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    this.#rest += piece;
    // A carriage return at the end may be half of a line break.
    const end = this.#rest.endsWith('\r') ? this.#rest.length - 1 : this.#rest.length;
    const lines = this.#rest.slice(0, end).split(/\r\n|\r|\n/);
    this.#rest = (lines.pop() ?? '') + this.#rest.slice(end);
    for (const line of lines) {
      if (line !== '') this.#take(line);
      else if (this.#data.length > 0) events.push(this.#dispatch());
      else this.#event = '';
    }
    return events;
  }

  #take(line: string): void {
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
  }

  #dispatch(): ServerSentEvent {
    const event = { id: this.#id, event: this.#event === '' ? 'message' : this.#event, data: this.#data.join('\n') };
    this.#event = '';
    this.#data = [];
    return event;
  }
}

import type { Cancellation } from '../session/session-types.ts';
import type { RestsAs, StateAtRest, StateAtWork } from '../../schema/enums.ts';
import { transition, type State, type StateEvent } from './state.ts';
import type { TurnResult } from './turn-result.ts';

/** The current answer belongs to the turn while it works, and to the rest state afterwards. */
type At =
  | {
      readonly kind: StateAtWork | Exclude<StateAtRest, 'cancelled'>;
      readonly result: TurnResult | undefined;
      /** Of a turn that the server stopped. */
      readonly cancellation?: Cancellation | undefined;
    }
  | { readonly kind: 'cancelled'; readonly result: TurnResult | undefined; readonly cancellation: Cancellation };

/** The stored form of a conversation's standing. */
export interface Stood {
  readonly state: State;
  readonly result: TurnResult | undefined;
  readonly cancellation: Cancellation | undefined;
}

/** How a turn ends. */
export type Ending =
  | {
      readonly how: RestsAs;
      readonly result: TurnResult | undefined;
      readonly cancellation?: Cancellation;
    }
  | { readonly how: 'cancel'; readonly cancellation: Cancellation };

/** Events within a turn, into one, or back from one of the server's own requests. */
export type Move = Exclude<StateEvent, 'cancel'>;

/** Where a conversation stands, with the answer of its last turn. */
export class Standing {
  #at: At;

  /** `restored`: where it stood when an earlier process ended. */
  constructor(restored?: Stood) {
    const { state, result, cancellation } = restored ?? { state: 'starting', result: undefined };
    this.#at = { kind: state, result, cancellation } as At;
  }

  get state(): State {
    return this.#at.kind;
  }

  get result(): TurnResult | undefined {
    return this.#at.result;
  }

  get cancellation(): Cancellation | undefined {
    return this.#at.cancellation;
  }

  setResult(result: TurnResult | undefined): void {
    this.#at = { ...this.#at, result };
  }

  /** False if the event is invalid in this state. */
  move(event: Move): boolean {
    const kind = transition(this.state, event);
    if (kind === undefined) return false;
    this.#at = { kind, result: this.result };
    return true;
  }

  /** False if there is no turn to end. */
  end(ending: Ending): boolean {
    const next = this.#after(ending);
    if (!next) return false;
    this.#at = next;
    return true;
  }

  #after(ending: Ending): At | undefined {
    if (ending.how === 'cancel') {
      const kind = transition(this.state, ending.how);
      return kind && { kind, result: this.result, cancellation: ending.cancellation };
    }
    const kind = transition(this.state, ending.how);
    return kind && { kind, result: ending.result, cancellation: ending.cancellation };
  }
}

import { signal, type Signal } from '@preact/signals';
import type { AnswerBody, ApiRequest, RequestOutcomeView } from '../../../src/schema/api.ts';
import type { Stale } from '../../../src/schema/results.ts';
import { api, CallFailure, newKey, wordsOf } from '../api/client.ts';
import { signIn } from '../api/sign-in.ts';
import { takeRequests } from './inbox.ts';
import { readingOf } from './reading.ts';

/** The progress of the answer that was given on this page. */
export type AnswerState =
  | { readonly step: 'none' }
  | {
      readonly step: 'sent';
      readonly body: AnswerBody;
      /** The hub could not be reached; it is being resent. */ readonly retrying?: string;
    }
  | { readonly step: 'confirmed'; readonly body: AnswerBody; readonly warnings: readonly string[] }
  /** It may no longer mean what it meant: whoever allows it looks once more. */
  | { readonly step: 'stale'; readonly body: AnswerBody; readonly stale: Stale }
  | { readonly step: 'late'; readonly outcome: RequestOutcomeView | undefined }
  | { readonly step: 'refused'; readonly why: string };

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 8_000;

const states = new Map<string, Signal<AnswerState>>();

export function answerState(requestId: string): Signal<AnswerState> {
  let state = states.get(requestId);
  if (!state) {
    state = signal<AnswerState>({ step: 'none' });
    states.set(requestId, state);
  }
  return state;
}

/**
 * The one way to answer, by button, key or form. Nothing is allowed that was not on the screen: it is brought there
 * instead. Returns whether the answer was sent.
 */
export function sendAnswer({ requestId }: ApiRequest, body: AnswerBody): boolean {
  const reading = readingOf(requestId);
  reading.measure();
  if (body.decision === 'allow' && reading.left.peek() !== 'nothing') {
    reading.showUnseen();
    return false;
  }
  void answer(requestId, body, (settled) => takeRequests([settled]));
  return true;
}

/**
 * Sends an answer until the hub has confirmed its outcome. Every attempt carries the same key, so it counts once
 * however often it arrives; a second click while one is in progress does nothing.
 */
async function answer(requestId: string, body: AnswerBody, onSettled: (request: ApiRequest) => void): Promise<void> {
  const state = answerState(requestId);
  if (!['none', 'refused', 'stale'].includes(state.value.step)) return;
  state.value = { step: 'sent', body };
  const key = newKey();
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      const { request, warnings = [] } = await api.answer(requestId, body, key);
      state.value = { step: 'confirmed', body, warnings };
      onSettled(request);
      return;
    } catch (error) {
      if (error instanceof CallFailure && error.mayPass && signIn.value.state === 'in') {
        state.value = { step: 'sent', body, retrying: error.message };
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        continue;
      }
      if (error instanceof CallFailure && error.stale) {
        state.value = { step: 'stale', body, stale: error.stale };
        return;
      }
      const settled = error instanceof CallFailure && (error.status === 409 || error.status === 404);
      state.value = settled ? { step: 'late', outcome: error.outcome } : { step: 'refused', why: wordsOf(error) };
      return;
    }
  }
}

/** The requests that the CLI makes on its own, how they are recognised, and the answers that satisfy it. */

import type { AuxiliaryPurpose, ModelRequest, UnclassifiedRequest } from './model-request.ts';
import { text, type MessageReply } from './reply.ts';

interface Auxiliary {
  readonly purpose: AuxiliaryPurpose;
  recognises(request: UnclassifiedRequest): boolean;
  answer(request: ModelRequest): MessageReply;
}

const AUXILIARIES: readonly Auxiliary[] = [
  {
    // For a first prompt of more than a word or two, unless nonessential traffic is off.
    purpose: 'title',
    recognises: ({ system }) => system.includes('You are naming a coding session'),
    answer: () => text('{"title":"Scripted session"}'),
  },
  {
    // With the option `promptSuggestions`, after each turn but the first.
    purpose: 'suggestion',
    recognises: ({ lastUserText }) => lastUserText.startsWith('[SUGGESTION MODE:'),
    answer: () => text('run the tests'),
  },
  {
    // In permission mode `auto`, unless nonessential traffic is off.
    purpose: 'permission-check',
    recognises: ({ system }) => system.includes('You are a security monitor for autonomous AI coding agents'),
    answer: () => text('<block>no</block>'),
  },
  {
    purpose: 'compaction',
    recognises: ({ lastUserText }) => lastUserText.includes('Your task is to create a detailed summary of'),
    answer: ({ userTexts }) => text(summaryOf(userTexts.slice(0, -1))),
  },
  {
    // With the option `agentProgressSummaries`, every 30 seconds of a sub-agent.
    purpose: 'progress-summary',
    recognises: ({ lastUserText }) => lastUserText.includes('most recent action in 3-5 words using present tense'),
    answer: () => text('Following the script'),
  },
];

export function classify(request: UnclassifiedRequest): ModelRequest {
  const purpose = purposeOf(request);
  return { ...request, purpose, auxiliary: purpose !== 'conversation' };
}

export function automaticAnswer(request: ModelRequest): MessageReply | undefined {
  return AUXILIARIES.find(({ purpose }) => purpose === request.purpose)?.answer(request);
}

function purposeOf(request: UnclassifiedRequest): ModelRequest['purpose'] {
  if (request.path.startsWith('/v1/messages/count_tokens')) return 'token-count';
  return AUXILIARIES.find((auxiliary) => auxiliary.recognises(request))?.purpose ?? 'conversation';
}

/** Repeats the prompts: the conversation continues without them, and its script is found by them. */
function summaryOf(prompts: readonly string[]): string {
  return `<analysis>Scripted.</analysis>\n<summary>\nThe user asked:\n${prompts.join('\n')}\n</summary>`;
}

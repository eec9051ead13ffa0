import { alwaysOffer, type AlwaysOffer, type LastingRule, type OfferedAsk } from '../engine/requests/always.ts';
import { oneLine } from '../engine/conversation/tool-summary.ts';

/** Lasting grants must be readable in full too: rules longer than this are not offered. */
const MAX_RULES_LENGTH = 2_000;

const EXACT = 'exactly this command (this session only)';

/** What a form offers as "always allow". */
export function offerInForm(ask: OfferedAsk): AlwaysOffer {
  const offer = alwaysOffer(ask);
  return (describeInForm(offer) ?? '').length < MAX_RULES_LENGTH ? offer : { kind: 'nothing' };
}

const PLACES: Record<LastingRule['destination'], string> = {
  userSettings: 'your settings for all projects',
  projectSettings: 'the shared settings of this project',
  localSettings: 'your own settings for this project',
  session: 'this session only',
  cliArg: 'this session only',
};

/** With the destinations that Claude Code suggests: a person may change their own settings. */
export function describeInForm(offer: AlwaysOffer): string | undefined {
  return describe(offer, (rules) =>
    rules.map((update) => `${ruleNames(update).join(', ')} (${PLACES[update.destination]})`).join('; '),
  );
}

export function describeOffer(offer: AlwaysOffer): string | undefined {
  return describe(offer, (rules) => `${rules.flatMap(ruleNames).join(', ')} (this session only)`);
}

function describe(offer: AlwaysOffer, rulesText: (rules: readonly LastingRule[]) => string): string | undefined {
  switch (offer.kind) {
    case 'rules':
      return rulesText(offer.rules);
    case 'exact':
      return EXACT;
    case 'nothing':
      return undefined;
  }
}

function ruleNames({ rules }: LastingRule): string[] {
  return rules.map(({ toolName, ruleContent }) =>
    oneLine(ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`, MAX_RULES_LENGTH),
  );
}

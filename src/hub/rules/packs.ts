import gitLocal from '../../engine/rules/standing/packs/git-local.json' with { type: 'json' };
import reading from '../../engine/rules/standing/packs/reading.json' with { type: 'json' };
import { ruleFile, type RuleFields } from '../../schema/standing-rules.ts';

export interface RulePack {
  readonly name: string;
  readonly description: string;
  readonly rules: RuleFields[];
}

/** What comes with the program. A rule of a pack is in force once a person has made it their own. */
export const PACKS: RulePack[] = [reading, gitLocal].map((pack) => {
  const { name = '', description = '', rules } = ruleFile.parse(pack);
  return { name, description, rules: rules.map(({ id: _id, expiresAt: _expires, ...fields }) => fields) };
});

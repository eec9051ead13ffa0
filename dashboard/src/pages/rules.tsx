import { useSignal } from '@preact/signals';
import type { ApiRule, PacksAnswer, RuleBody, RulesBody } from '../../../src/schema/api-admin.ts';
import { api, newKey, wordsOf } from '../api/client.ts';
import { me } from '../api/sign-in.ts';
import { Empty } from '../parts/empty.tsx';
import { useLoaded, WhenLoaded } from '../parts/loaded.tsx';
import { Visible } from '../parts/plain-text.tsx';
import { Replay, RuleEditor } from '../parts/rule-editor.tsx';
import { Deadline, Time } from '../parts/time.tsx';

type Editing = { readonly rule: RuleBody; readonly id?: string };

/** Decisions that people have made in advance. */
export function RulesPage() {
  const { loaded, load } = useLoaded(() => Promise.all([api.rules(), api.rulePacks()]));
  const editing = useSignal<Editing | undefined>(undefined);
  const mayMake = me.value?.may.answer === 'all';
  return (
    <main class="page tokens" id="content" tabIndex={-1}>
      <div class="page-header">
        <h1>Rules</h1>
        {mayMake && (
          <button
            type="button"
            class="button primary"
            onClick={() => (editing.value = { rule: { decision: 'allow', tool: 'Bash' } })}
          >
            New rule
          </button>
        )}
      </div>
      <WhenLoaded loaded={loaded} what="rules" load={load}>
        {([{ rules }, { packs }]) => (
          <>
            <RuleList rules={rules} onChanged={load} onEdit={(rule) => (editing.value = rule)} />
            <Packs packs={packs} mayMake={mayMake} onMade={load} />
          </>
        )}
      </WhenLoaded>
      {editing.value && (
        <RuleEditor
          title={editing.value.id === undefined ? 'New rule' : 'Change rule'}
          {...editing.value}
          onClose={() => (editing.value = undefined)}
          onSaved={load}
        />
      )}
    </main>
  );
}

interface ListProps {
  rules: readonly ApiRule[];
  onChanged: () => void;
  onEdit: (editing: Editing) => void;
}

const INACTIVE = {
  disabled: 'disabled',
  expired: 'expired',
  author: 'its author lost the role',
} as const;

function RuleList({ rules, onChanged, onEdit }: ListProps) {
  const problem = useSignal('');
  const act = (work: Promise<unknown>) => {
    work.then(onChanged, (error: unknown) => (problem.value = wordsOf(error)));
  };
  if (rules.length === 0)
    return (
      <Empty title="No rules yet">
        <p>When the same thing is asked again and again, create one from the request itself, beside Allow.</p>
      </Empty>
    );
  return (
    <section aria-label="Rules">
      {problem.value !== '' && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <ul class="token-list rule-list">
        {rules.map((rule) => (
          <li key={rule.id} class={rule.inactive === undefined ? 'active' : 'revoked'}>
            <span class="token-name">
              <span class={`tag ${rule.decision}`}>{rule.decision}</span>{' '}
              <span class="mono">
                <Visible text={ruleText(rule)} />
              </span>
            </span>
            <span>
              {rule.inactive !== undefined && <span class="tag">{INACTIVE[rule.inactive]}</span>}
              <span class="mono">
                <Visible text={rule.directory ?? 'everywhere'} />
              </span>
            </span>
            <span class="quiet">
              by <Visible text={rule.author} /> <Time at={rule.createdAt} />,{' '}
              {rule.lastUsedAt === undefined ? (
                'never used'
              ) : (
                <>
                  used {rule.uses} {rule.uses === 1 ? 'time' : 'times'}, last <Time at={rule.lastUsedAt} />
                </>
              )}
              {rule.expiresAt !== undefined && (
                <>
                  , expires <Deadline at={rule.expiresAt} />
                </>
              )}
              {rule.note !== undefined && (
                <>
                  : <Visible text={rule.note} />
                </>
              )}
            </span>
            {rule.mayChange && (
              <span class="buttons">
                <button
                  type="button"
                  class="button small"
                  aria-label={`${rule.enabled ? 'Disable' : 'Enable'} ${ruleText(rule)}`}
                  onClick={() => act(api.changeRule(rule.id, { enabled: !rule.enabled }))}
                >
                  {rule.enabled ? 'Disable' : 'Enable'}
                </button>
                <button
                  type="button"
                  class="button small"
                  aria-label={`Edit ${ruleText(rule)}`}
                  onClick={() => onEdit({ id: rule.id, rule: fieldsOf(rule) })}
                >
                  Edit…
                </button>
                <button
                  type="button"
                  class="button small danger"
                  aria-label={`Remove ${ruleText(rule)}`}
                  onClick={() => act(api.removeRule(rule.id))}
                >
                  Remove
                </button>
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ruleText({ tool, match }: Pick<ApiRule, 'tool' | 'match'>): string {
  return match === undefined ? tool : `${tool}(${match})`;
}

function fieldsOf({ decision, tool, match, directory, principal, note }: ApiRule): RuleBody {
  return {
    decision,
    tool,
    ...(match !== undefined && { match }),
    ...(directory !== undefined && { directory }),
    ...(principal !== undefined && { principal }),
    ...(note !== undefined && { note }),
  };
}

/** What comes with the program: what each would have answered, and the rules made on request. */
function Packs({ packs, mayMake, onMade }: { packs: PacksAnswer['packs']; mayMake: boolean; onMade: () => void }) {
  const opened = useSignal<string | undefined>(undefined);
  const directory = useSignal('');
  const problem = useSignal('');
  const make = async (rules: RulesBody['rules']) => {
    try {
      const scope = directory.value !== '' && { directory: directory.value };
      await api.createRules({ rules: rules.map((rule) => ({ ...rule, ...scope })) }, newKey());
    } catch (error) {
      problem.value = wordsOf(error);
    }
    onMade();
  };
  return (
    <section aria-label="Packs">
      <h2>Packs</h2>
      {packs.map(({ name, description, rules }) => (
        <details
          class="card pack"
          onToggle={({ currentTarget }) => {
            if (currentTarget.open) opened.value = name;
          }}
        >
          <summary>
            <strong>{name}</strong> <span class="quiet">{description}</span>
          </summary>
          {opened.value === name && (
            <>
              <p class="mono">{rules.map((rule) => ruleText(rule)).join(', ')}</p>
              <Replay rules={rules} />
              {mayMake && (
                <div class="buttons">
                  <label class="field">
                    <span>Directory</span>
                    <input
                      type="text"
                      class="mono"
                      value={directory.value}
                      placeholder="everywhere"
                      onInput={({ currentTarget }) => (directory.value = currentTarget.value)}
                    />
                  </label>
                  <button type="button" class="button" onClick={() => void make(rules)}>
                    Create these rules
                  </button>
                  <span class="answer-state problem" aria-live="polite">
                    {problem.value}
                  </span>
                </div>
              )}
            </>
          )}
        </details>
      ))}
    </section>
  );
}

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ReplayAnswer, RuleBody } from '../../../src/schema/api-admin.ts';
import { RULE_DECISIONS } from '../../../src/schema/enums.ts';
import { api, newKey, wordsOf } from '../api/client.ts';
import { plural } from '../text/words.ts';
import { Dialog } from './dialog.tsx';
import { Visible } from './plain-text.tsx';
import { Time } from './time.tsx';

const REPLAY_AFTER_MS = 300;

const LIFETIMES = { '': 'never expires', '7': '7 days', '30': '30 days', '90': '90 days' } as const;
type Lifetime = keyof typeof LIFETIMES;
const DAY_MS = 86_400_000;

interface Props {
  title: string;
  /** What the fields begin with. */
  rule: RuleBody;
  /** Of a rule that exists. */
  id?: string;
  onClose: () => void;
  onSaved: () => void;
}

/** A rule, to be edited, with what it would have done so far. */
export function RuleEditor({ title, rule, id, onClose, onSaved }: Props) {
  const fields = useSignal<RuleBody>(rule);
  const lifetime = useSignal<Lifetime>('');
  const state = useSignal<{ busy: boolean; problem: string }>({ busy: false, problem: '' });
  const key = useRef(newKey());
  const changed = (more: Partial<Record<keyof RuleBody, string>>) => {
    const merged = Object.entries({ ...fields.value, ...more }).filter(([, value]) => value !== '');
    fields.value = Object.fromEntries(merged) as unknown as RuleBody;
    key.current = newKey();
  };
  const save = async () => {
    if (state.value.busy) return;
    state.value = { busy: true, problem: '' };
    const { requestId, ...patch } = fields.value;
    const expires =
      lifetime.value === '' ? {} : { expiresAt: new Date(Date.now() + Number(lifetime.value) * DAY_MS).toISOString() };
    try {
      if (id === undefined) await api.createRule({ ...fields.value, ...expires }, key.current);
      else {
        const cleared = { match: null, directory: null, principal: null, note: null };
        await api.changeRule(id, { ...cleared, ...patch, ...expires });
      }
      onSaved();
      onClose();
    } catch (error) {
      state.value = { busy: false, problem: wordsOf(error) };
    }
  };
  const { decision, tool, match = '', directory = '', note = '' } = fields.value;
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="rule-editor"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label class="field">
          <span>Decision</span>
          <select value={decision} onChange={({ currentTarget }) => changed({ decision: currentTarget.value })}>
            {RULE_DECISIONS.toReversed().map((one) => (
              <option value={one}>{one}</option>
            ))}
          </select>
        </label>
        <Text label="Tool" value={tool} required onChange={(value) => changed({ tool: value })} />
        <Text label="Match" value={match} onChange={(value) => changed({ match: value })} />
        <Text label="Directory" value={directory} onChange={(value) => changed({ directory: value })} />
        <Text label="Note" value={note} onChange={(value) => changed({ note: value })} />
        <label class="field">
          <span>Lifetime</span>
          <select
            value={lifetime.value}
            onChange={({ currentTarget }) => (lifetime.value = currentTarget.value as Lifetime)}
          >
            {(Object.keys(LIFETIMES) as Lifetime[]).map((one) => (
              <option value={one}>{LIFETIMES[one]}</option>
            ))}
          </select>
        </label>
        <Replay rules={[fields.value]} />
        <div class="buttons">
          <button type="submit" class="button primary" disabled={state.value.busy}>
            {id === undefined ? 'Create rule' : 'Save rule'}
          </button>
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <span class="answer-state problem" aria-live="polite">
            {state.value.problem}
          </span>
        </div>
      </form>
    </Dialog>
  );
}

function Text(props: { label: string; value: string; required?: boolean; onChange: (value: string) => void }) {
  const { label, value, required = false, onChange } = props;
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="text"
        class="mono"
        value={value}
        required={required}
        spellcheck={false}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  );
}

type Replayed = ReplayAnswer | { readonly problem: string } | undefined;

/** What rules would have done with the requests of the last 30 days. */
export function Replay({ rules }: { rules: readonly RuleBody[] }) {
  const replayed = useSignal<Replayed>(undefined);
  const asked = JSON.stringify(rules);
  useEffect(() => {
    let isCurrent = true;
    const [first] = rules;
    const timer = setTimeout(() => {
      if (first === undefined) return;
      const body =
        rules.length === 1 ? first : { rules: rules.map(({ requestId: _, expiresAt: _at, ...rule }) => rule) };
      api.replayRule(body).then(
        (answer) => isCurrent && (replayed.value = answer),
        (error: unknown) => isCurrent && (replayed.value = { problem: wordsOf(error) }),
      );
    }, REPLAY_AFTER_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [asked]);
  const found = replayed.value;
  if (!found) return <p class="quiet">Looking at the last 30 days…</p>;
  if ('problem' in found) return <p class="problem">{found.problem}</p>;
  const { matched, allowed, denied, requests, warnings } = found;
  return (
    <section class="replay" aria-label="Replay" aria-live="polite">
      {warnings.map((warning) => (
        <p class="warning">{warning}</p>
      ))}
      <p>
        In the last 30 days it would have matched {plural(matched, 'request')}: people allowed {allowed}
        {denied > 0 ? <strong class="denied"> and denied {denied}</strong> : ' and denied none'}.
      </p>
      <ul class="replay-list">
        {requests.slice(0, 20).map(({ requestId, decision, by, summary, at }) => (
          <li key={requestId}>
            <strong class={decision === 'deny' ? 'denied' : 'allowed'}>
              {decision === 'deny' ? 'Denied' : 'Allowed'}
            </strong>{' '}
            by <Visible text={by} /> <Time at={at} />:{' '}
            <span class="mono">
              <Visible text={summary} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

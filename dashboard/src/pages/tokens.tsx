import { useSignal, type Signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { Role } from '../../../src/schema/enums.ts';
import type { ApiToken, CreatedToken } from '../../../src/schema/api-admin.ts';
import { api, newKey, wordsOf } from '../api/client.ts';
import { Dialog, DialogButtons } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { useLoaded, WhenLoaded } from '../parts/loaded.tsx';
import { Visible } from '../parts/plain-text.tsx';
import { PhoneDialog } from '../parts/rich.tsx';
import { Deadline, Time } from '../parts/time.tsx';

const ROLES: Record<Role, string> = {
  viewer: 'reads everything',
  caller: 'starts and uses its own sessions',
  approver: 'a person: answers every request, interrupts, cancels',
  admin: 'everything',
};

const LIFETIMES = {
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
  '365d': '1 year',
  never: 'never expires',
} as const;

export function TokensPage() {
  const { loaded, load } = useLoaded(() => api.tokens());
  const phone = useSignal(false);
  return (
    <main class="page tokens" id="content" tabIndex={-1}>
      <div class="page-header">
        <h1>Tokens</h1>
        <button type="button" class="button small" onClick={() => (phone.value = true)}>
          Sign in on a phone
        </button>
      </div>
      {phone.value && <PhoneDialog onClose={() => ((phone.value = false), load())} />}
      <NewToken onCreated={load} />
      <WhenLoaded loaded={loaded} what="tokens" load={load}>
        {({ tokens }) => (
          <>
            <TokenList
              title="Tokens"
              none="No tokens yet"
              tokens={tokens.filter(({ kind }) => kind === 'token')}
              onRevoked={load}
            />
            <TokenList
              title="Sign-ins"
              none="No sign-ins"
              tokens={tokens.filter(({ kind }) => kind === 'sign-in')}
              onRevoked={load}
            />
          </>
        )}
      </WhenLoaded>
    </main>
  );
}

interface ListProps {
  title: string;
  none: string;
  tokens: readonly ApiToken[];
  onRevoked: () => void;
}

function TokenList({ title, none, tokens, onRevoked }: ListProps) {
  const asked = useSignal<ApiToken | undefined>(undefined);
  const problem = useSignal('');
  const revoke = (token: ApiToken) => {
    api.revokeToken(token.id).then(onRevoked, (error: unknown) => (problem.value = wordsOf(error)));
  };
  const sorted = [...tokens].sort(
    (a, b) => Number(b.status === 'active') - Number(a.status === 'active') || b.createdAt.localeCompare(a.createdAt),
  );
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {problem.value !== '' && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {tokens.length === 0 ? (
        <Empty title={none} />
      ) : (
        <ul class="token-list">
          {sorted.map((token) => (
            <li key={token.id} class={token.status}>
              <span class="token-name">
                <Visible text={token.name} />
                {token.kind === 'sign-in' && (
                  <span class="quiet">
                    {' '}
                    · <Visible text={token.device ?? 'unknown device'} />
                  </span>
                )}
              </span>
              <span>
                {token.current === true && <span class="tag this-one">this one</span>}
                <span class="tag">{token.role}</span>
                {token.attended && <span class="tag">attended</span>}
                {token.status !== 'active' && <span class="tag">{token.status}</span>}
              </span>
              <span class="quiet">
                {token.kind === 'sign-in' ? 'signed in' : 'made'} <Time at={token.createdAt} />
                {token.lastUsedAt !== undefined && (
                  <>
                    , last used <Time at={token.lastUsedAt} />
                  </>
                )}
                {token.revokedAt !== undefined ? (
                  <>
                    , revoked <Time at={token.revokedAt} />
                  </>
                ) : token.expiresAt !== undefined ? (
                  <>
                    , {token.status === 'expired' ? 'expired' : 'expires'} <Deadline at={token.expiresAt} />
                  </>
                ) : (
                  ', never expires'
                )}
              </span>
              {token.status === 'active' && (
                <button
                  type="button"
                  class="button small danger"
                  aria-label={`Revoke ${token.name}`}
                  onClick={() => (asked.value = token)}
                >
                  Revoke
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {asked.value && (
        <Dialog title={`Revoke “${asked.value.name}”?`} onClose={() => (asked.value = undefined)}>
          <p>Anything that uses it is refused from now on. Sessions that it started are kept.</p>
          <DialogButtons leave="Keep it" isQuestion>
            <button type="submit" class="button danger" onClick={() => asked.value && revoke(asked.value)}>
              Yes, revoke it
            </button>
          </DialogButtons>
        </Dialog>
      )}
    </section>
  );
}

function NewToken({ onCreated }: { onCreated: () => void }) {
  const name = useSignal('');
  const role = useSignal<Role>('caller');
  const attended = useSignal(false);
  const expires = useSignal<keyof typeof LIFETIMES>('30d');
  const state = useSignal<{ busy: boolean; problem: string }>({ busy: false, problem: '' });
  const created = useSignal<CreatedToken | undefined>(undefined);
  const key = useRef(newKey());
  const submit = async () => {
    if (state.value.busy || name.value.trim() === '') return;
    state.value = { busy: true, problem: '' };
    try {
      created.value = await api.createToken(
        {
          name: name.value.trim(),
          role: role.value,
          attended: attended.value,
          expires: expires.value,
        },
        key.current,
      );
      key.current = newKey();
      name.value = '';
      state.value = { busy: false, problem: '' };
      onCreated();
    } catch (error) {
      state.value = { busy: false, problem: wordsOf(error) };
    }
  };
  const changed = <Value,>(field: Signal<Value>, value: Value) => {
    field.value = value;
    key.current = newKey();
  };
  return (
    <>
      <form
        class="card new-token"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <label class="field">
          <span>Name</span>
          <input
            type="text"
            required
            maxLength={100}
            value={name.value}
            onInput={({ currentTarget }) => changed(name, currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Role</span>
          <select value={role.value} onChange={({ currentTarget }) => changed(role, currentTarget.value as Role)}>
            {(Object.keys(ROLES) as Role[]).map((one) => (
              <option value={one}>{one}</option>
            ))}
          </select>
          <span>{ROLES[role.value]}</span>
        </label>
        <label class="field">
          <span>Lifetime</span>
          <select
            value={expires.value}
            onChange={({ currentTarget }) => changed(expires, currentTarget.value as keyof typeof LIFETIMES)}
          >
            {(Object.keys(LIFETIMES) as (keyof typeof LIFETIMES)[]).map((one) => (
              <option value={one}>{LIFETIMES[one]}</option>
            ))}
          </select>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={attended.value}
            onChange={({ currentTarget }) => changed(attended, currentTarget.checked)}
          />
          <span>
            Attended <span class="quiet">A person uses it, and its form answers count as theirs</span>
          </span>
        </label>
        <div class="buttons">
          <button type="submit" class="button primary" disabled={state.value.busy}>
            Create token
          </button>
          <span class="answer-state problem" aria-live="polite">
            {state.value.problem}
          </span>
        </div>
      </form>
      {created.value && <Created token={created.value} onClose={() => (created.value = undefined)} />}
    </>
  );
}

function Created({ token, onClose }: { token: CreatedToken; onClose: () => void }) {
  const copied = useSignal(false);
  return (
    <Dialog title={`Token “${token.name}”`} onClose={onClose}>
      <p>Copy it now: it is shown only once and stored as a digest.</p>
      <pre class="code secret" tabIndex={0} role="group" aria-label="Token">
        {token.token}
      </pre>
      <DialogButtons>
        <button
          type="button"
          class="button primary"
          onClick={() => void navigator.clipboard.writeText(token.token).then(() => (copied.value = true))}
        >
          {copied.value ? 'Copied' : 'Copy'}
        </button>
      </DialogButtons>
    </Dialog>
  );
}

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { CostsAnswer } from '../../../src/schema/api.ts';
import { api, wordsOf } from '../api/client.ts';
import { Empty, Failed, Loading } from '../parts/empty.tsx';
import { Path, Visible } from '../parts/plain-text.tsx';
import { dollars, plural } from '../text/words.ts';
import type { ComponentChild } from 'preact';

type Loaded =
  | { readonly state: 'loading' }
  | { readonly state: 'loaded'; readonly costs: CostsAnswer }
  | { readonly state: 'failed'; readonly why: string };

/** What the sessions that the hub still has have cost. */
export function CostsPage() {
  const loaded = useSignal<Loaded>({ state: 'loading' });
  const load = () => {
    api.costs().then(
      (costs) => (loaded.value = { state: 'loaded', costs }),
      (error: unknown) => (loaded.value = { state: 'failed', why: wordsOf(error) }),
    );
  };
  useEffect(load, []);
  const state = loaded.value;
  return (
    <main class="page costs" id="content" tabIndex={-1}>
      <div class="page-header">
        <h1>Costs</h1>
        {state.state === 'loaded' && (
          <p class="quiet">
            {dollars(state.costs.totalUsd)} in all
            {state.costs.unknown > 0 && `, and more by ${plural(state.costs.unknown, 'session')} cut off in a turn`}
          </p>
        )}
      </div>
      <p class="quiet">
        Of the sessions that the hub still has, each up to the end of its last turn; days by the clock of the hub.
      </p>
      {state.state === 'loading' ? (
        <Loading what="Adding up…" />
      ) : state.state === 'failed' ? (
        <Failed what="The costs could not be loaded" why={state.why} onRetry={load} />
      ) : state.costs.days.length === 0 ? (
        <Empty title="Nothing has cost anything yet" />
      ) : (
        <>
          <Table
            title="By day"
            first="Day"
            rows={state.costs.days.map(({ day, costUsd }) => ({ name: day, costUsd, note: '' }))}
          />
          <Table
            title="By project"
            first="Project"
            rows={state.costs.projects.map(({ directory, costUsd, sessions }) => ({
              name: <Path path={directory} />,
              costUsd,
              note: plural(sessions, 'session'),
            }))}
          />
          <Table
            title="By owner"
            first="Owner"
            rows={state.costs.owners.map(({ name, costUsd, sessions }) => ({
              name: <Visible text={name} />,
              costUsd,
              note: plural(sessions, 'session'),
            }))}
          />
        </>
      )}
    </main>
  );
}

interface TableProps {
  title: string;
  first: string;
  rows: readonly { readonly name: ComponentChild; readonly costUsd: number; readonly note: string }[];
}

function Table({ title, first, rows }: TableProps) {
  return (
    <table class="sums">
      <caption>{title}</caption>
      <thead class="visually-hidden">
        <tr>
          <th scope="col">{first}</th>
          <th scope="col">Sessions</th>
          <th scope="col">Cost</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, costUsd, note }) => (
          <tr>
            <th scope="row">{name}</th>
            <td class="quiet">{note}</td>
            <td>{dollars(costUsd)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

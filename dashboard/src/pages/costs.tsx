import type { ComponentChild } from 'preact';
import { api } from '../api/client.ts';
import { Empty } from '../parts/empty.tsx';
import { useLoaded, WhenLoaded } from '../parts/loaded.tsx';
import { Path, Visible } from '../parts/plain-text.tsx';
import { dollars, plural } from '../text/words.ts';

/** What the sessions that the hub still has have cost. */
export function CostsPage() {
  const { loaded, load } = useLoaded(() => api.costs());
  return (
    <main class="page costs" id="content" tabIndex={-1}>
      <div class="page-header">
        <h1>Costs</h1>
        {loaded.state === 'loaded' && (
          <p class="quiet">
            {dollars(loaded.value.totalUsd)} in total
            {loaded.value.unknown > 0 && `, and more by ${plural(loaded.value.unknown, 'session')} cut off in a turn`}
          </p>
        )}
      </div>
      <p class="quiet">
        Of the sessions that the hub still has, each up to the end of its last turn; days by the clock of the hub.
      </p>
      <WhenLoaded loaded={loaded} what="costs" load={load}>
        {({ days, projects, owners }) =>
          days.length === 0 ? (
            <Empty title="Nothing has cost anything yet" />
          ) : (
            <>
              <Table
                title="By day"
                first="Day"
                rows={days.map(({ day, costUsd }) => ({ name: day, costUsd, note: '' }))}
              />
              <Table
                title="By project"
                first="Project"
                rows={projects.map(({ directory, costUsd, sessions }) => ({
                  name: <Path path={directory} />,
                  costUsd,
                  note: plural(sessions, 'session'),
                }))}
              />
              <Table
                title="By owner"
                first="Owner"
                rows={owners.map(({ name, costUsd, sessions }) => ({
                  name: <Visible text={name} />,
                  costUsd,
                  note: plural(sessions, 'session'),
                }))}
              />
            </>
          )
        }
      </WhenLoaded>
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

import type { Work } from '../../../src/schema/results.ts';
import { plural } from '../text/words.ts';
import { Code, Visible } from './plain-text.tsx';

/** The evidence of a turn: what changed, what ran, what went wrong. */
export function WorkFacts({ work }: { work: Work }) {
  const {
    filesChanged,
    insertions = 0,
    deletions = 0,
    commandsRun,
    commandsFailed = 0,
    lastCheck,
    problems = [],
  } = work;
  return (
    <div class="work-facts">
      <ul>
        {filesChanged !== undefined && (
          <li>
            {plural(filesChanged, 'file')} changed in the last turn, <span class="added">+{insertions}</span>{' '}
            <span class="removed">−{deletions}</span>
          </li>
        )}
        {commandsRun !== undefined && (
          <li>
            {plural(commandsRun, 'command')} run{commandsFailed > 0 && `, ${commandsFailed} failed`}
          </li>
        )}
        {lastCheck && (
          <li>
            Last check:{' '}
            <span class="mono">
              <Visible text={lastCheck.command} />
            </span>{' '}
            {lastCheck.exitCode === 0 ? 'passed' : `failed with ${lastCheck.exitCode}`}
            {!lastCheck.afterLastEdit && ', before the last edit'}
          </li>
        )}
        {work.shared === true && <li>Another session worked in the same directory.</li>}
        {work.incomplete !== undefined && <li>{work.incomplete}</li>}
      </ul>
      {problems.map(({ tool, what, outcome, tail }) => (
        <details class="problem-fold">
          <summary>
            <span class="problem">{outcome === 'denied' ? '⊘ Denied' : '✕ Failed'}</span>{' '}
            <Visible text={`${tool}: ${what}`} />
          </summary>
          <Code text={tail} label="End of its output" tone="problem" />
        </details>
      ))}
    </div>
  );
}

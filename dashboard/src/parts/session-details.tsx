import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { ApiSessionDetail } from '../../../src/schema/api.ts';
import { api, wordsOf } from '../api/client.ts';
import { me } from '../api/sign-in.ts';
import { links } from '../model/router.ts';
import { modeWords } from '../text/permission-modes.ts';
import { costTitle, costWords, shortId } from '../text/words.ts';
import { Dialog } from './dialog.tsx';
import { Code, Visible } from './plain-text.tsx';
import { Time } from './time.tsx';

export function SessionDetails({ detail }: { detail: ApiSessionDetail }) {
  const { workspace } = detail;
  return (
    <div class="work">
      <dl class="fields facts">
        <Fact name="Session">
          <span class="mono">{detail.sessionId}</span>
          {me.value?.may.readAudit === true && (
            <>
              {' '}
              <a href={links.auditOf(detail.sessionId)}>Audit trail of this session</a>
            </>
          )}
        </Fact>
        <Fact name="Title">
          <Visible text={detail.title ?? ''} /> {detail.may.includes('message') && <Rename detail={detail} />}
        </Fact>
        <Fact name="Directory">
          <span class="mono">
            <Visible text={detail.cwd} />
          </span>
        </Fact>
        {workspace?.type === 'worktree' && (
          <Fact name="Worktree">
            <span class="mono">
              {workspace.branch} from {workspace.base}, in {workspace.path}
            </span>
          </Fact>
        )}
        {detail.forkOf && (
          <Fact name="Fork of">
            <a href={links.session(detail.forkOf.sessionId)} class="mono">
              {shortId(detail.forkOf.sessionId)}
            </a>
          </Fact>
        )}
        <Fact name="Owner">
          <Visible text={detail.owner.name} />
        </Fact>
        <Fact name="Model">{detail.model ?? 'default'}</Fact>
        {detail.permissionMode !== undefined && (
          <Fact name="Mode">
            {detail.permissionMode} <span class="quiet">{modeWords(detail.permissionMode)}</span>
          </Fact>
        )}
        <Fact name="Began">
          <Time at={detail.createdAt} />
        </Fact>
        <Fact name="Last active">
          <Time at={detail.lastActiveAt} />
        </Fact>
        {(detail.archivedAt !== undefined || detail.may.includes('archive')) && (
          <Fact name="Archive">
            <Archive detail={detail} />
          </Fact>
        )}
        <Fact name="Steps">{detail.totalTurns}</Fact>
        <Fact name="Cost">
          {costWords(detail)} <span class="quiet">{costTitle(detail)}</span>
        </Fact>
        {(detail.backgroundTasks ?? 0) > 0 && <Fact name="Background tasks">{detail.backgroundTasks}</Fact>}
        <Fact name="Hub">{detail.hub}</Fact>
      </dl>
      <h2>Options</h2>
      <Code text={JSON.stringify(detail.options, null, 2)} label="Session options" />
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Out of the lists, and nothing else: it is found by the filter, and its next message takes it back. */
function Archive({ detail: { sessionId, archivedAt, may } }: { detail: ApiSessionDetail }) {
  const problem = useSignal('');
  const isArchived = archivedAt !== undefined;
  const put = () => {
    problem.value = '';
    api.archive(sessionId, !isArchived).catch((error: unknown) => (problem.value = wordsOf(error)));
  };
  return (
    <>
      {isArchived && (
        <>
          since <Time at={archivedAt} />{' '}
        </>
      )}
      {may.includes('archive') && (
        <button type="button" class="link" title="Its next message takes it out of the archive" onClick={put}>
          {isArchived ? 'Unarchive' : 'Archive this session'}
        </button>
      )}
      {problem.value !== '' && (
        <span class="problem" role="alert">
          {problem.value}
        </span>
      )}
    </>
  );
}

function Rename({ detail }: { detail: ApiSessionDetail }) {
  const title = useSignal<string | undefined>(undefined);
  const problem = useSignal('');
  const rename = () => {
    const wanted = title.value?.trim() ?? '';
    if (wanted === '') return;
    api.rename(detail.sessionId, wanted).then(
      () => (title.value = undefined),
      (error: unknown) => (problem.value = wordsOf(error)),
    );
  };
  return (
    <>
      <button type="button" class="link rename" onClick={() => (title.value = detail.title ?? '')}>
        Rename
      </button>
      {title.value !== undefined && (
        <Dialog title="Rename this session" onClose={() => (title.value = undefined)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              rename();
            }}
          >
            <label class="field">
              <span>Title</span>
              <input
                type="text"
                maxLength={200}
                required
                autoFocus
                value={title.value}
                onInput={({ currentTarget }) => (title.value = currentTarget.value)}
              />
            </label>
            {problem.value !== '' && (
              <p class="problem" role="alert">
                {problem.value}
              </p>
            )}
            <div class="buttons">
              <button type="submit" class="button primary">
                Save title
              </button>
              <button type="button" class="button" onClick={() => (title.value = undefined)}>
                Keep it
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}

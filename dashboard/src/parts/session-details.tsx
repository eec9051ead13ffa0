import type { ComponentChildren } from 'preact';
import type { ApiSessionDetail } from '../../../src/schema/api.ts';
import { me } from '../api/sign-in.ts';
import { links } from '../model/router.ts';
import { modeWords } from '../text/permission-modes.ts';
import { costTitle, costWords, shortId } from '../text/words.ts';
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
        <Fact name="Turns">{detail.totalTurns}</Fact>
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

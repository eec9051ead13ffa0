import { useSignal } from '@preact/signals';
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks';
import type { AnswerBody, ApiRequest, RequestOutcomeView } from '../../../src/schema/api.ts';
import { writtenWords } from '../../../src/schema/enums.ts';
import { api } from '../api/client.ts';
import { takeRequests } from '../model/inbox.ts';
import { me } from '../api/sign-in.ts';
import { answerState, sendAnswer, type AnswerState } from '../model/answers.ts';
import { draft } from '../model/drafts.ts';
import { readingOf, type Left, type Reading } from '../model/reading.ts';
import { links } from '../model/router.ts';
import { moveFocus } from '../model/stops.ts';
import { shortcutsOn } from '../model/settings.ts';
import { isOutside, oneLine, shortId } from '../text/words.ts';
import { focusMain, isPointing } from './focus.ts';
import { FormattedText } from './formatted-text.tsx';
import { InputEditor } from './input-editor.tsx';
import { InputPart, ReadingContext } from './part.tsx';
import { Project, Visible } from './plain-text.tsx';
import { Questions, questionsOf } from './questions.tsx';
import { Markdown } from './rich.tsx';
import { RuleEditor } from './rule-editor.tsx';
import { Deadline, Time } from './time.tsx';
import { OtherFields, ToolInput } from './tool-input.tsx';

/** One request, with everything needed to decide on it, and the decision. */
export function RequestCard({ request, inSession = false }: { request: ApiRequest; inSession?: boolean }) {
  const heading = useId();
  const element = useRef<HTMLElement>(null);
  const state = answerState(request.requestId).value;
  const isOpen = request.status === 'open' && state.step !== 'late' && state.step !== 'confirmed';
  const reading = readingOf(request.requestId);
  const notice = useSignal('');
  const send = (body: AnswerBody) => {
    const sent = sendAnswer(request, body);
    notice.value = sent ? '' : NOT_SEEN;
    if (sent) continueAfter(element.current);
  };
  useEffect(() => {
    if (isOpen) void lookAgain(request);
  }, [request.requestId]);
  useLayoutEffect(() => {
    const card = element.current;
    return () => {
      if (card?.contains(document.activeElement)) focusMain();
    };
  }, []);
  // A settled card stays as tall as it was: otherwise a click meant for the next card could land on another button.
  const settledHeight = useRef<number | undefined>(undefined);
  settledHeight.current = isOpen
    ? undefined
    : (settledHeight.current ?? element.current?.getBoundingClientRect().height);
  return (
    <article
      class={isOpen ? 'card request' : 'card request settled'}
      style={{ minHeight: settledHeight.current === undefined ? undefined : `${settledHeight.current}px` }}
      aria-labelledby={heading}
      tabIndex={-1}
      ref={element}
      data-request={request.requestId}
      onKeyDown={(event) => {
        // Keys count only while the card itself has focus, so that no letter of a message decides anything.
        if (!isOpen || !shortcutsOn.value || event.target !== element.current) return;
        // A key that is held down answers one request, not the next ones as well.
        if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
        const target = controlOf(event.key, element.current);
        if (target?.matches(':disabled') === true && isOff(reading.left.peek())) {
          notice.value = NOT_SEEN;
          continueReading(element.current, reading);
        } else if (event.key === 'm') requestAnimationFrame(() => target?.focus());
        else target?.click();
      }}
    >
      <header class="card-header">
        <h2 id={heading}>
          {request.type === 'permission' ? (
            <span class="tool-name">
              <Visible text={request.toolName} />
            </span>
          ) : request.type === 'plan_review' ? (
            'Plan to review'
          ) : (
            'Question'
          )}
        </h2>
        {!inSession && (
          <p class="from">
            <a href={links.session(request.sessionId)}>
              <Visible text={oneLine(request.session.title ?? `Session ${shortId(request.sessionId)}`, 80)} />
            </a>{' '}
            <span class="quiet">
              · <Project of={request.session} /> · <Visible text={request.session.owner.name} />
            </span>
          </p>
        )}
        <p class="when quiet">
          <Time at={request.createdAt} />
          {request.expiresAt !== undefined && isOpen && (
            <>
              {' · denied '}
              <Deadline at={request.expiresAt} />
            </>
          )}
        </p>
      </header>
      {request.agentID !== undefined && (
        <p class="quiet">
          Asked by a sub-agent
          {request.agent !== undefined && (
            <>
              : <Visible text={request.agent} />
            </>
          )}
        </p>
      )}
      {request.said !== undefined && request.said !== '' && (
        <div class="said">
          <Markdown text={withoutFences(request.said)} />
        </div>
      )}
      <ReadingContext.Provider value={reading}>
        <Body
          request={request}
          disabled={!isOpen || state.step === 'sent' || !request.mayAnswer}
          left={reading.left.value}
          onAnswer={send}
        />
      </ReadingContext.Provider>
      {request.decisionReason !== undefined && (
        <p class="quiet">
          <Visible text={request.decisionReason} />
        </p>
      )}
      {request.blockedPath !== undefined && isOutside(request.blockedPath, request.cwd ?? request.session.cwd) && (
        <p class="quiet">
          Outside the working directory:{' '}
          <span class="mono">
            <Visible text={request.blockedPath} />
          </span>
        </p>
      )}
      {isOpen && request.stale !== undefined && state.step !== 'stale' && <Changes stale={request.stale} />}
      <footer class="card-footer">
        {!isOpen ? (
          <>
            <Outcome request={request} state={state} />
            {request.outcome?.ran && (
              <details class="asked-for">
                <summary>What was allowed instead</summary>
                <ToolInput toolName={request.toolName} input={request.outcome.ran} cwd={request.session.cwd} />
              </details>
            )}
          </>
        ) : request.mayAnswer ? (
          <Decision
            request={request}
            state={state}
            left={reading.left.value}
            notice={notice.value}
            send={send}
            onBack={() => element.current?.focus({ preventScroll: true })}
          />
        ) : (
          <p class="quiet">{whoMay()}</p>
        )}
      </footer>
    </article>
  );
}

/** Whoever answers by keyboard continues with the next one; the buttons of this one go away. */
function continueAfter(card: HTMLElement | null): void {
  if (!card?.contains(document.activeElement)) return;
  if (isPointing() || (!moveFocus(1) && !moveFocus(-1))) card.focus({ preventScroll: true });
}

/** What was said is told in one line: a fence in it no longer opens a block. */
function withoutFences(line: string): string {
  return line.replace(/`{3,}\w*/g, '');
}

/** How old a request is when it is worth asking whether it still means what it meant. */
const LOOK_AGAIN_MS = 60_000;

async function lookAgain({ requestId, createdAt }: ApiRequest): Promise<void> {
  if (Date.now() - Date.parse(createdAt) < LOOK_AGAIN_MS) return;
  // The hub looks again anyway when it is allowed.
  await api.request(requestId).then(
    (row) => takeRequests([row]),
    () => undefined,
  );
}

/** What has changed since it was asked. */
function Changes({ stale: { changes } }: { stale: NonNullable<ApiRequest['stale']> }) {
  return (
    <div class="changes">
      <p>
        <strong>This may no longer mean what it did:</strong>
      </p>
      <ul>
        {changes.map(({ what, text }) => (
          <li key={what}>
            <Visible text={text} />
          </li>
        ))}
      </ul>
    </div>
  );
}

const NOT_SEEN = 'Not sent: this had not been on the screen yet. Read it, then answer again.';

function controlOf(key: string, card: HTMLElement | null): HTMLElement | null | undefined {
  const control = { a: 'allow', A: 'always', s: 'accept-edits', d: 'deny', e: 'change', m: 'message' }[key];
  return control === undefined ? undefined : card?.querySelector<HTMLElement>(`[data-control="${control}"]`);
}

/** Why Allow is off stands below what has to be read first: leads there. */
function continueReading(card: HTMLElement | null, reading: Reading): void {
  const fold = card?.querySelector<HTMLElement>('.part [data-control="show-all"]');
  if (fold) fold.focus();
  else reading.showUnseen();
}

function whoMay(): string {
  return me.value?.hub.approvals === 'human'
    ? 'Only a person with the role approver or admin may answer this.'
    : 'Your role may not answer this.';
}

function Body({
  request,
  disabled,
  left,
  onAnswer,
}: {
  request: ApiRequest;
  disabled: boolean;
  left: Left;
  onAnswer: (body: AnswerBody) => void;
}) {
  const { input, plan, session, toolName, type } = request;
  if (type === 'user_question') {
    return (
      <>
        <Questions
          requestId={request.requestId}
          questions={questionsOf(request)}
          disabled={disabled}
          unread={isOff(left)}
          readOnly={!request.mayAnswer}
          onAnswer={(answers) => onAnswer({ decision: 'allow', answers })}
        />
        <OtherFields input={input} except={['questions']} />
      </>
    );
  }
  if (type === 'plan_review') {
    return plan === undefined || plan === '' ? (
      <>
        <p class="quiet">Claude provided no written plan, only its last message.</p>
        <ToolInput toolName={toolName} input={input} cwd={session.cwd} />
      </>
    ) : (
      <div class="tool-input">
        <InputPart id="plan">
          <FormattedText text={plan} label="Plan" />
        </InputPart>
        <OtherFields input={input} except={input['plan'] === plan ? ['plan'] : []} />
      </div>
    );
  }
  return (
    <>
      {request.description !== undefined &&
        !Object.values(input).some((value) => saysAlready(value, request.description)) && (
          <p>
            <Visible text={request.description} />
          </p>
        )}
      <ToolInput toolName={toolName} input={input} cwd={session.cwd} place={request.edit} />
    </>
  );
}

/** Claude Code describes an edit by the name of its file, which is there anyway. */
function saysAlready(value: unknown, description = ''): boolean {
  return typeof value === 'string' && (value === description || value.endsWith(`/${description}`));
}

/** Tools that Claude Code's mode `acceptEdits` is about. */
const EDITS: ReadonlySet<string> = new Set(['Edit', 'MultiEdit', 'Write', 'NotebookEdit']);
const DENY_WORDS: Record<ApiRequest['type'], string> = {
  permission: 'If you deny: what to do instead',
  plan_review: 'If you do not allow it: what to change',
  user_question: 'If you deny: why',
};
const KEEP_PLANNING = 'Keep planning: the plan is not approved yet.';

interface DecisionProps {
  request: ApiRequest;
  state: AnswerState;
  left: Left;
  notice: string;
  send: (body: AnswerBody) => void;
  /** The editor is closed: single keys work again. */
  onBack: () => void;
}

/** Whether allowing is turned off. What is merely elsewhere on the page is brought onto the screen instead. */
function isOff(left: Left): left is 'folded' | 'taller' {
  return left === 'folded' || left === 'taller';
}

const WHY_OFF = {
  folded: 'Allow is off until you have unfolded the whole input.',
  taller: 'Allow is off until the whole input has been on the screen: scroll through it.',
} as const;

function Decision({ request, state, left, notice, send, onBack }: DecisionProps) {
  const reason = useId();
  const message = draft(`words ${request.requestId}`, '');
  const editing = draft(`changes ${request.requestId}`, false);
  /** A card that comes back onto the screen with its editor open does not take the focus. */
  const justOpened = useRef(false);
  const makingRule = useSignal(false);
  const busy = state.step === 'sent';
  const isQuestion = request.type === 'user_question';
  const words = message.value.trim();
  const allowing = { disabled: busy || isOff(left), 'aria-describedby': isOff(left) ? reason : undefined };
  const deny = () => send({ decision: 'deny', ...(words !== '' && { message: words }) });
  if (state.step === 'stale') {
    const { body, stale } = state;
    return (
      <div role="alertdialog" aria-label="Allow an old request">
        {/* The focus may have moved on to the next request. */}
        <div role="alert">
          <Changes stale={stale} />
        </div>
        <div class="buttons">
          <button type="button" class="button primary" onClick={() => send({ ...body, confirm: stale.digest })}>
            Allow anyway
          </button>
          <button type="button" class="button danger" data-control="deny" onClick={() => send({ decision: 'deny' })}>
            Deny
          </button>
        </div>
      </div>
    );
  }
  if (editing.value && request.asShown === undefined) {
    return (
      <InputEditor
        requestId={request.requestId}
        toolName={request.toolName}
        input={request.input}
        busy={busy}
        unread={isOff(left) ? WHY_OFF[left] : undefined}
        autoFocus={justOpened.current}
        onSend={(updatedInput) => send({ decision: 'allow', updatedInput })}
        onBack={() => {
          editing.value = false;
          onBack();
        }}
      />
    );
  }
  return (
    <>
      <label class="field deny-words">
        <span class="visually-hidden">Message to Claude</span>
        <textarea
          rows={1}
          placeholder={DENY_WORDS[request.type]}
          value={message.value}
          disabled={busy}
          data-control="message"
          onInput={({ currentTarget }) => (message.value = currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && words !== '') deny();
          }}
        />
      </label>
      <div class="buttons">
        {!isQuestion && (
          <button
            type="button"
            class="button primary"
            data-control="allow"
            {...allowing}
            onClick={() => send({ decision: 'allow' })}
          >
            Allow
          </button>
        )}
        {request.type === 'permission' && request.alwaysAllows !== undefined && (
          <button
            type="button"
            class="button"
            data-control="always"
            {...allowing}
            title={`Also allows, in this session: ${request.alwaysAllows}`}
            onClick={() => send({ decision: 'allow', always: true })}
          >
            Always allow
          </button>
        )}
        {(request.type === 'plan_review' || EDITS.has(request.toolName)) && request.asShown === undefined && (
          <button
            type="button"
            class="button"
            data-control="accept-edits"
            {...allowing}
            title="Files in its directory are then edited without asking; everything else is still asked"
            onClick={() => send({ decision: 'allow', acceptEdits: true })}
          >
            {request.type === 'plan_review' ? 'Allow and accept edits' : 'Allow edits in this session'}
          </button>
        )}
        {request.suggestedRule && (
          <button
            type="button"
            class="button"
            data-control="rule"
            {...allowing}
            onClick={() => (makingRule.value = true)}
          >
            Always in this repository…
          </button>
        )}
        {request.type === 'permission' && request.asShown === undefined && (
          <button
            type="button"
            class="button"
            data-control="change"
            disabled={busy}
            onClick={() => {
              justOpened.current = true;
              editing.value = true;
            }}
          >
            Change…
          </button>
        )}
        <button type="button" class="button danger" data-control="deny" disabled={busy} onClick={deny}>
          Deny
        </button>
        {request.type === 'plan_review' && (
          <button
            type="button"
            class="button"
            disabled={busy}
            onClick={() => send({ decision: 'deny', message: words === '' ? KEEP_PLANNING : words })}
          >
            Keep planning
          </button>
        )}
        <Progress state={state} notice={notice} />
      </div>
      {makingRule.value && request.suggestedRule && (
        <RuleEditor
          title="Always in this repository"
          rule={{ ...request.suggestedRule, requestId: request.requestId }}
          onClose={() => (makingRule.value = false)}
          onSaved={() => undefined}
        />
      )}
      {isOff(left) && (
        <p class="quiet why-off" id={reason}>
          {WHY_OFF[left]}
        </p>
      )}
      {request.type === 'plan_review' && (
        <p class="quiet always-words">“Allow” asks again before each edit; “Keep planning” leaves it in plan mode.</p>
      )}
      {request.type === 'permission' && request.alwaysAllows !== undefined && (
        <p class="quiet always-words">
          “Always allow” also allows, in this session:{' '}
          <span class="mono">
            <Visible text={request.alwaysAllows} />
          </span>
        </p>
      )}
    </>
  );
}

function Progress({ state, notice }: { state: AnswerState; notice: string }) {
  const words =
    state.step === 'sent'
      ? state.retrying === undefined
        ? 'Sent…'
        : `Not confirmed yet: ${state.retrying} Trying again.`
      : state.step === 'refused'
        ? state.why
        : notice;
  return (
    <span class={state.step === 'refused' ? 'answer-state problem' : 'answer-state'} aria-live="polite">
      {words}
    </span>
  );
}

function Outcome({ request, state }: { request: ApiRequest; state: AnswerState }) {
  const outcome = request.outcome ?? (state.step === 'late' ? state.outcome : undefined);
  return (
    <p class="outcome" aria-live="polite">
      {state.step === 'late' && <strong>Too late. </strong>}
      {outcome ? (
        <OutcomeWords outcome={outcome} mine={state.step === 'confirmed'} />
      ) : state.step === 'confirmed' ? (
        `${state.body.decision === 'allow' ? 'Allowed' : 'Denied'} by you, confirmed.`
      ) : (
        'This request is no longer open.'
      )}
      {state.step === 'confirmed' && state.warnings.map((warning) => <span class="warning"> {warning}</span>)}
    </p>
  );
}

const SOURCES: Record<string, string> = {
  timeout: 'nobody answered in time',
  cancel: 'the turn was stopped',
  interrupt: 'the turn was interrupted',
  shutdown: 'the hub stopped',
  policy: 'one of the operator’s rules',
};

export function OutcomeWords({ outcome, mine }: { outcome: RequestOutcomeView; mine: boolean }) {
  const { decision, by, source, at, message, inputChanged, answers } = outcome;
  const itself = SOURCES[source];
  return (
    <>
      <strong class={decision === 'allow' ? 'allowed' : 'denied'}>{decision === 'allow' ? 'Allowed' : 'Denied'}</strong>{' '}
      {itself !== undefined ? `because ${itself}` : `by ${mine ? `you (${by})` : by}`}
      {inputChanged === true && ', with changes'} <Time at={at} />
      <Quoted message={message} />
      <Answers answers={answers} />
    </>
  );
}

/** What was said with a decision. */
export function Quoted({ message }: { message: string | undefined }) {
  const written = writtenWords(message);
  return written === '' ? null : (
    <>
      {': '}
      <q>
        <Visible text={written} />
      </q>
    </>
  );
}

/** Which answer each question got. */
export function Answers({ answers }: { answers: RequestOutcomeView['answers'] | undefined }) {
  return (
    <>
      {Object.entries(answers ?? {}).map(([question, answer]) => (
        <span class="given-answer">
          <Visible text={question} />{' '}
          <strong>
            <Visible text={String(answer)} />
          </strong>
        </span>
      ))}
    </>
  );
}

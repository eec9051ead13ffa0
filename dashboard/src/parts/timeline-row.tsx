import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiSessionDetail } from '../../../src/schema/api.ts';
import type { ImagesAnswer } from '../../../src/schema/api-events.ts';
import { STATES_AT_WORK } from '../../../src/schema/enums.ts';
import { api, newKey, wordsOf } from '../api/client.ts';
import { me } from '../api/sign-in.ts';
import { answerState } from '../model/answers.ts';
import { request } from '../model/inbox.ts';
import { links } from '../model/router.ts';
import type { SessionView } from '../model/session-view.ts';
import { duration, plural } from '../text/words.ts';
import type { AgentResult } from '../../../src/schema/events.ts';
import {
  againText,
  progressOf,
  type AskedRequest,
  type Progress,
  type Row,
  type ToolCall,
} from '../timeline/timeline.ts';
import { toolSummary } from '../timeline/tool-summary.ts';
import { ChevronIcon } from './icons.tsx';
import { Code, Copy, Path, Visible } from './plain-text.tsx';
import { Answers, OutcomeWords, Quoted } from './request-card.tsx';
import { RewindButton } from './rewind.tsx';
import { Markdown } from './rich.tsx';
import { Time } from './time.tsx';
import { ToolInput } from './tool-input.tsx';

interface Props {
  row: Row;
  shown: SessionView;
  detail: ApiSessionDetail;
}

const MAX_DEPTH = 4;

export function TimelineRow({ row: { item, depth, of }, shown, detail }: Props) {
  const level = `row depth-${Math.min(depth, MAX_DEPTH)}`;
  switch (item.kind) {
    case 'prompt':
      return (
        <section class={`${level} prompt`} aria-label="Message to Claude">
          <p class="row-head quiet">
            Prompt · <Time at={item.at} />
            {item.messageId !== undefined && detail.may.includes('rewind') && (
              <RewindButton sessionId={detail.sessionId} messageId={item.messageId} />
            )}
          </p>
          <div class="prompt-text">
            <Visible text={item.text} />
          </div>
        </section>
      );
    case 'text':
      return (
        <section class={`${level} text`} aria-label="Claude">
          {!item.unfinished && <Copy text={item.text} what="this text" />}
          <Markdown text={item.text} />
          {item.unfinished && <span class="cursor" aria-hidden="true" />}
        </section>
      );
    case 'thinking':
      return (
        <Folding
          class={`${level} thinking`}
          open={shown.unfolded(item.key)}
          summary={<span class="quiet">Thinking</span>}
        >
          <div class="prompt-text quiet">
            <Visible text={item.text} />
          </div>
        </Folding>
      );
    case 'tool':
      return <ToolRow level={level} call={item.call} of={of ?? detail.sessionId} shown={shown} detail={detail} />;
    case 'request':
      return (
        <div class={level}>
          <p class="note">
            <Visible text={item.request.toolName} />
            {!item.request.outcome && <span class="quiet"> · waiting for an answer</span>}
          </p>
          <Decided asked={item.request} />
        </div>
      );
    case 'aside':
      return (
        <Folding
          class={`${level} thinking`}
          open={shown.unfolded(item.key)}
          summary={<span class="quiet">{item.title}</span>}
        >
          <div class="prompt-text quiet">
            <Visible text={item.text} />
          </div>
        </Folding>
      );
    case 'result':
      return <ResultRow level={level} result={item.result} at={item.at} />;
    case 'note':
      return (
        <div class={`${level} note ${item.isProblem ? 'problem' : 'quiet'}`}>
          <Visible text={item.text} /> · <Time at={item.at} />
        </div>
      );
  }
}

interface FoldingProps {
  class: string;
  /** Whether it is open. Kept with the session: the row itself is removed when scrolled away. */
  open: Signal<boolean>;
  summary: ComponentChildren;
  children: ComponentChildren;
}

function Folding({ open, ...props }: FoldingProps) {
  return (
    <details class={props.class} open={open.value} onToggle={({ currentTarget }) => (open.value = currentTarget.open)}>
      <summary>
        <ChevronIcon />
        {props.summary}
      </summary>
      {open.value && <div class="fold">{props.children}</div>}
    </details>
  );
}

const MARKS: Record<Progress, { readonly mark: string; readonly word: string }> = {
  waiting: { mark: '◆', word: 'waiting for an answer' },
  allowed: { mark: '↻', word: 'allowed, to be made again' },
  running: { mark: '▸', word: 'running' },
  done: { mark: '✓', word: 'done' },
  failed: { mark: '✕', word: 'failed' },
  denied: { mark: '⊘', word: 'denied' },
  unfinished: { mark: '–', word: 'did not finish' },
  repeated: { mark: '↻', word: 'made again below' },
  lapsed: { mark: '!', word: 'allowed, but not carried out' },
};

interface ToolRowProps {
  level: string;
  call: ToolCall;
  /** The session that made it. */
  of: string;
  shown: SessionView;
  detail: ApiSessionDetail;
}

function ToolRow({ level, call, of, shown, detail }: ToolRowProps) {
  const { cwd } = detail;
  const isAtWork = (STATES_AT_WORK as readonly string[]).includes(detail.state) || (detail.backgroundTasks ?? 0) > 0;
  // Nothing that a copy inherited goes on in it.
  const rests = !isAtWork || of !== detail.sessionId;
  const progress = progressOf(call, rests ? 'resting' : 'working');
  const { mark, word } = MARKS[progress];
  const summary = toolSummary(call.name, call.ran ?? call.input, cwd);
  const took = call.endedAt === undefined ? '' : duration(call.endedAt - call.startedAt);
  return (
    <div class={`${level} tool tool-${progress}`}>
      <Folding
        class="tool-fold"
        open={shown.unfolded(call.id)}
        summary={
          <>
            <span class="mark" title={word} role="img" aria-label={word}>
              {mark}
            </span>
            <span class="tool-name">
              <Visible text={call.name} />
            </span>
            <span class="tool-summary mono">
              {summary.isPath ? <Path path={summary.words} /> : <Visible text={summary.words} />}
            </span>
            <span class="took quiet">
              {progress === 'done' && call.input['run_in_background'] === true
                ? 'started in the background'
                : progress === 'done' || progress === 'failed'
                  ? took
                  : word}
            </span>
          </>
        }
      >
        {call.ran && <p class="quiet">What ran, as changed by whoever allowed it:</p>}
        <ToolInput toolName={call.name} input={call.ran ?? call.input} cwd={cwd} />
        {call.ran && (
          <details class="asked-for">
            <summary>What Claude had asked for</summary>
            <ToolInput toolName={call.name} input={call.input} cwd={cwd} />
          </details>
        )}
        {call.output !== undefined && call.output !== '' && (
          <Code text={call.output} label="Result" tone={call.failed === true ? 'problem' : 'output'} />
        )}
      </Folding>
      {call.images && <Images sessionId={of} call={call.id} {...call.images} />}
      {call.request && <Decided asked={call.request} />}
      {call.refused && !call.request && <Refused {...call.refused} />}
      {progress === 'lapsed' && <Lapsed call={call} detail={detail} />}
      {call.steps.length > 0 && (
        <button
          type="button"
          class="link steps"
          aria-expanded={!shown.isFolded(call)}
          onClick={() => shown.fold(call, !shown.isFolded(call))}
        >
          {shown.isFolded(call) ? 'Show' : 'Hide'} {plural(call.steps.length, 'step')} of the sub-agent
        </button>
      )}
    </div>
  );
}

interface ImagesProps {
  sessionId: string;
  call: string;
  event: number;
  count: number;
}

/** What Claude saw. The place for it is there before it is loaded, so that nothing moves when it is. */
function Images({ sessionId, call, event, count }: ImagesProps) {
  const loaded = useSignal<readonly ImagesAnswer['images'][number][] | { readonly why: string } | undefined>(undefined);
  const isLarge = useSignal(false);
  useEffect(() => {
    api.images(sessionId, event).then(
      ({ images }) => (loaded.value = images.filter(({ toolUseID }) => toolUseID === call)),
      (error: unknown) => (loaded.value = { why: wordsOf(error) }),
    );
  }, [sessionId, event, call]);
  const state = loaded.value;
  if (state && 'why' in state)
    return (
      <p class="note problem" role="alert">
        {plural(count, 'image')} could not be loaded: {state.why}
      </p>
    );
  return (
    <div class={isLarge.value ? 'images large' : 'images'}>
      {state?.map(({ mediaType, data }, index) => (
        <button
          type="button"
          aria-label={isLarge.value ? 'Show the image smaller' : 'Show the image larger'}
          onClick={() => (isLarge.value = !isLarge.value)}
        >
          <img src={`data:${mediaType};base64,${data}`} alt={`Image ${index + 1} that Claude saw`} />
        </button>
      ))}
    </div>
  );
}

/** Nothing tells Claude to make the call after all, except a message. */
function Lapsed({ call, detail }: { call: ToolCall; detail: ApiSessionDetail }) {
  const state = useSignal<'none' | 'sent' | { readonly why: string }>('none');
  const key = useRef(newKey());
  const ask = () => {
    state.value = 'sent';
    api
      .message(detail.sessionId, { prompt: againText(call), whenBusy: 'queue' }, key.current)
      .catch((error: unknown) => {
        state.value = { why: wordsOf(error) };
      });
  };
  return (
    <p class="note lapsed">
      <strong>Allowed, but not carried out.</strong>{' '}
      {detail.may.includes('message') && (
        <button type="button" class="button small" disabled={state.value === 'sent'} onClick={ask}>
          Ask again
        </button>
      )}{' '}
      <span aria-live="polite">
        {state.value === 'sent'
          ? 'Claude was asked to make the call again.'
          : typeof state.value === 'object'
            ? state.value.why
            : ''}
      </span>
    </p>
  );
}

const SOURCES: Readonly<Record<string, string>> = {
  human: 'by a person',
  caller: 'by the caller',
  rule: 'by a standing rule',
  policy: 'by one of the operator’s rules',
  timeout: 'because nobody answered in time',
  cancel: 'because the turn was stopped',
  interrupt: 'because the turn was interrupted',
  shutdown: 'because the hub stopped',
};

/** The outcome of a request: by name if this page has seen it, otherwise what the session's own log says. */
function Decided({ asked }: { asked: AskedRequest }) {
  const answer = answerState(asked.id).value;
  const known = request(asked.id)?.outcome ?? (answer.step === 'late' ? answer.outcome : undefined);
  const { outcome } = asked;
  if (!known && !outcome) return null;
  return (
    <p class="note quiet decided">
      {answer.step === 'late' && <strong>Too late. </strong>}
      {known ? (
        <OutcomeWords
          outcome={{ ...known, answers: known.answers ?? outcome?.answers }}
          mine={answer.step === 'confirmed'}
        />
      ) : (
        outcome && (
          <>
            {outcome.decision === 'allow' ? 'Allowed' : 'Denied'} {SOURCES[outcome.source] ?? `by ${outcome.source}`}
            {outcome.rule !== undefined && <RuleLink id={outcome.rule} />}
            {outcome.changed && ', with changes'}
            <Quoted message={outcome.message} />
            <Answers answers={outcome.answers} />
          </>
        )
      )}
    </p>
  );
}

const REFUSERS: Readonly<Record<string, string>> = {
  rule: 'Denied by a standing rule',
  disallowedTools: 'Denied by the tools that are disallowed in this session',
  settings: 'Denied by the settings of Claude Code',
  policy: 'Denied by Claude Code',
};

/** Nobody was asked. */
function Refused({ message, by, rule }: NonNullable<ToolCall['refused']>) {
  return (
    <p class="note quiet decided">
      {REFUSERS[by] ?? 'Denied'}
      {rule !== undefined && <RuleLink id={rule} />}:{' '}
      <q>
        <Visible text={message} />
      </q>
    </p>
  );
}

function RuleLink({ id }: { id: string }) {
  return (
    <>
      {' '}
      {me.value?.may.readAll === true ? (
        <a href={links.rules} class="mono">
          {id}
        </a>
      ) : (
        <span class="mono">{id}</span>
      )}
    </>
  );
}

function ResultRow({ level, result, at }: { level: string; result: AgentResult; at: number }) {
  const { isError, interrupted, numTurns, durationMs, permissionDenials, text } = result;
  const denied = permissionDenials.length;
  return (
    <section class={isError ? `${level} result problem` : `${level} result`} aria-label="End of the turn">
      <p class="row-head">
        <strong>{interrupted ? 'Interrupted' : isError ? 'Ended with an error' : 'Turn ended'}</strong>
        <span class="quiet">
          {plural(numTurns, 'step')} · {duration(durationMs)}
          {denied > 0 && ` · ${denied} denied`} · <Time at={at} />
        </span>
      </p>
      {isError && !interrupted && (
        <Code text={text === '' ? 'No further output.' : text} label="Error" tone="problem" />
      )}
    </section>
  );
}

import type { ApiRequest } from '../../../src/schema/api.ts';
import { draft } from '../model/drafts.ts';
import { fields, list, text, type Fields } from '../timeline/event-data.ts';
import { InputPart } from './part.tsx';
import { Visible } from './plain-text.tsx';
import { FieldList } from './tool-input.tsx';

export interface Question {
  readonly question: string;
  readonly header: string | undefined;
  readonly multiSelect: boolean;
  readonly options: readonly Option[];
  readonly others: Fields;
}

interface Option {
  readonly label: string;
  readonly description: string | undefined;
  /** Such as `preview`: what choosing it would look like. */
  readonly others: Fields;
}

export function questionsOf({ questions, input }: Pick<ApiRequest, 'questions' | 'input'>): Question[] {
  return list(questions ?? input['questions']).map((one) => {
    const { question, header, multiSelect, options, ...others } = fields(one);
    return {
      question: text(question) ?? '',
      header: text(header),
      multiSelect: multiSelect === true,
      options: list(options).map((option) => {
        const { label, description, ...rest } = fields(option);
        return { label: text(label) ?? '', description: text(description), others: rest };
      }),
      others,
    };
  });
}

interface Props {
  requestId: string;
  questions: readonly Question[];
  disabled: boolean;
  /** Parts of it have not been on the screen yet. */
  unread: boolean;
  /** The viewer may not answer it. */
  readOnly: boolean;
  onAnswer: (answers: Record<string, string | string[]>) => void;
}

interface Chosen {
  readonly labels: readonly string[];
  readonly own: string;
}

const NOTHING: Chosen = { labels: [], own: '' };

/** Each question with its choices, and a field for a free-text answer. */
export function Questions({ requestId, questions, disabled, unread, readOnly, onAnswer }: Props) {
  const chosen = draft<readonly Chosen[]>(
    `answers ${requestId}`,
    questions.map(() => NOTHING),
  );
  const set = (index: number, next: Partial<Chosen>) => {
    chosen.value = chosen.value.map((one, at) => (at === index ? { ...one, ...next } : one));
  };
  const isComplete = chosen.value.every(({ labels, own }) => labels.length > 0 || own.trim() !== '');
  const submit = () => {
    const answers = questions.map(({ question, multiSelect }, index): [string, string | string[]] => {
      const { labels, own } = chosen.value[index] ?? NOTHING;
      const all = own.trim() === '' ? [...labels] : [...(multiSelect ? labels : []), own.trim()];
      return [question, multiSelect && all.length > 1 ? all : (all[0] ?? '')];
    });
    onAnswer(Object.fromEntries(answers));
  };
  return (
    <form
      class="questions"
      onSubmit={(event) => {
        event.preventDefault();
        if (isComplete && !disabled && !unread) submit();
      }}
    >
      {questions.map(({ question, header, multiSelect, options, others }, index) => {
        const { labels, own } = chosen.value[index] ?? NOTHING;
        const name = `${requestId}-${index}`;
        return (
          <InputPart id={`question ${index}`}>
            {/* A disabled fieldset would also disable the buttons in it that unfold and copy texts. */}
            <fieldset>
              <legend>
                {header !== undefined && header !== '' && (
                  <span class="tag">
                    <Visible text={header} />
                  </span>
                )}
                <Visible text={question} />
              </legend>
              {options.map(({ label, description, others: more }) => (
                <>
                  <label class="choice">
                    <input
                      type={multiSelect ? 'checkbox' : 'radio'}
                      name={name}
                      checked={labels.includes(label)}
                      disabled={disabled}
                      onChange={({ currentTarget }) => {
                        if (!multiSelect) set(index, { labels: [label], own: '' });
                        else
                          set(index, {
                            labels: currentTarget.checked ? [...labels, label] : labels.filter((one) => one !== label),
                          });
                      }}
                    />
                    <span>
                      <span class="choice-label">
                        <Visible text={label} />
                      </span>
                      {description !== undefined && (
                        <span class="choice-description">
                          <Visible text={description} />
                        </span>
                      )}
                    </span>
                  </label>
                  <FieldList of={more} />
                </>
              ))}
              <FieldList of={others} />
              <label class="field" hidden={readOnly}>
                <span>{options.length > 0 ? 'Another answer' : 'Answer'}</span>
                <input
                  type="text"
                  value={own}
                  disabled={disabled}
                  onInput={({ currentTarget }) =>
                    set(index, {
                      own: currentTarget.value,
                      ...(!multiSelect && currentTarget.value !== '' && { labels: [] }),
                    })
                  }
                />
              </label>
            </fieldset>
          </InputPart>
        );
      })}
      <div class="buttons" hidden={readOnly}>
        <button type="submit" class="button primary" disabled={disabled || unread || !isComplete}>
          Answer
        </button>
      </div>
    </form>
  );
}

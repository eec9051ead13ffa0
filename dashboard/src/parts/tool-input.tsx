import type { ComponentChild } from 'preact';
import type { ApiRequest } from '../../../src/schema/api.ts';
import { pathWithin } from '../text/words.ts';
import { fields, list, text, type Fields } from '../timeline/event-data.ts';
import { FormattedText } from './formatted-text.tsx';
import { InputPart } from './part.tsx';
import { Code, Visible } from './plain-text.tsx';
import { EditDiff } from './rich.tsx';

interface Props {
  toolName: string;
  input: Fields;
  cwd: string;
  /** Where the edit goes, if known. */
  place?: ApiRequest['edit'];
}

/** Everything that a tool is called with: its main fields in a suitable form, then the rest. */
export function ToolInput({ toolName, input, cwd, place }: Props) {
  const { shown, used } = mainFields(toolName, input, cwd, place);
  return (
    <div class="tool-input">
      {shown}
      <OtherFields input={input} except={used} />
      {Object.keys(input).length === 0 && (
        <InputPart id="none">
          <p class="quiet">Called without any input.</p>
        </InputPart>
      )}
    </div>
  );
}

/** The fields of an input that are not shown in another form. */
export function OtherFields({ input, except }: { input: Fields; except: readonly string[] }) {
  const others = Object.entries(input).filter(([name]) => !except.includes(name));
  if (others.length === 0) return null;
  return (
    <dl class="fields">
      {others.map(([name, value]) => (
        <div>
          <dt>
            <Visible text={name} />
          </dt>
          <dd>
            <InputPart id={`field ${name}`}>
              <Value name={name} value={value} />
            </InputPart>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Fields within a part of the input. */
export function FieldList({ of }: { of: Fields }) {
  const all = Object.entries(of);
  return all.length === 0 ? null : (
    <dl class="fields">
      {all.map(([name, value]) => (
        <div>
          <dt>
            <Visible text={name} />
          </dt>
          <dd>
            <Value name={name} value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

interface MainFields {
  readonly shown: ComponentChild;
  /** Only what is shown whole: every other field is listed. */
  readonly used: readonly string[];
}

function mainFields(toolName: string, input: Fields, cwd: string, place: Props['place']): MainFields {
  const filePath = text(input['file_path']);
  const command = text(input['command']);
  const before = text(input['old_string']);
  const after = text(input['new_string']);
  const content = text(input['content']);
  const plan = text(input['plan']);
  const prompt = text(input['prompt']);
  const edits = editsOf(input['edits']);
  if (toolName === 'Bash' && command !== undefined) {
    const description = text(input['description']);
    return {
      shown: (
        <>
          <InputPart id="command">
            <Code text={command} label="Command" tone="command" />
          </InputPart>
          {description !== undefined && (
            <InputPart id="description">
              <p class="quiet">
                <Visible text={description} />
              </p>
            </InputPart>
          )}
        </>
      ),
      used: description === undefined ? ['command'] : ['command', 'description'],
    };
  }
  if (toolName === 'Edit' && filePath !== undefined && before !== undefined && after !== undefined) {
    return {
      shown: (
        <>
          <Path path={filePath} cwd={cwd} />
          <InputPart id="edit">
            <EditDiff
              before={before}
              after={after}
              firstLine={place?.line}
              linesBefore={place?.before}
              linesAfter={place?.after}
              label={`Changes in ${filePath}`}
            />
          </InputPart>
        </>
      ),
      used: ['file_path', 'old_string', 'new_string', ...(input['replace_all'] === false ? ['replace_all'] : [])],
    };
  }
  if (toolName === 'Write' && filePath !== undefined && content !== undefined) {
    return {
      shown: (
        <>
          <Path path={filePath} cwd={cwd} note={content === '' ? 'an empty file' : 'whole file'} />
          <InputPart id="content">
            <EditDiff before="" after={content} firstLine={1} label={`Content of ${filePath}`} />
          </InputPart>
        </>
      ),
      used: ['file_path', 'content'],
    };
  }
  if (toolName === 'MultiEdit' && filePath !== undefined && edits !== undefined) {
    return {
      shown: (
        <>
          <Path path={filePath} cwd={cwd} />
          {edits.map((edit, index) => (
            <InputPart id={`edit ${index}`}>
              <EditDiff
                before={edit.before}
                after={edit.after}
                label={`Change ${index + 1} of ${edits.length} in ${filePath}`}
              />
            </InputPart>
          ))}
        </>
      ),
      used: ['file_path', 'edits'],
    };
  }
  if (toolName === 'ExitPlanMode' && plan !== undefined) {
    return {
      shown: (
        <InputPart id="plan">
          <FormattedText text={plan} label="Plan" />
        </InputPart>
      ),
      used: ['plan'],
    };
  }
  if ((toolName === 'Agent' || toolName === 'Task') && prompt !== undefined) {
    return {
      shown: (
        <InputPart id="prompt">
          <FormattedText text={prompt} label="Prompt" />
        </InputPart>
      ),
      used: ['prompt'],
    };
  }
  const todos = todoLines(input['todos']);
  if (toolName === 'TodoWrite' && todos !== undefined) {
    return {
      shown: (
        <InputPart id="todos">
          <Code text={todos.join('\n')} label="List" />
        </InputPart>
      ),
      used: ['todos'],
    };
  }
  return { shown: undefined, used: [] };
}

function Path({ path, cwd, note }: { path: string; cwd: string; note?: string }) {
  return (
    <InputPart id="path">
      <p class="path" title={path}>
        <Visible text={pathWithin(path, cwd)} />
        {note !== undefined && <span class="quiet"> · {note}</span>}
      </p>
    </InputPart>
  );
}

const SHORT = 80;

function Value({ name, value }: { name: string; value: unknown }) {
  const words = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  if (words.length <= SHORT && !words.includes('\n')) {
    return (
      <span class="mono">
        <Visible text={words} />
      </span>
    );
  }
  return <Code text={words} label={name} />;
}

/** The edits, unless they have fields that a diff does not show. */
function editsOf(value: unknown): readonly { readonly before: string; readonly after: string }[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const edits = list(value).flatMap((edit) => {
    const { old_string: before, new_string: after, replace_all: all = false, ...others } = fields(edit);
    const isWhole = all === false && Object.keys(others).length === 0;
    return isWhole && typeof before === 'string' && typeof after === 'string' ? [{ before, after }] : [];
  });
  return edits.length === value.length ? edits : undefined;
}

/** The items, unless they have fields that a line does not show. */
function todoLines(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const lines = list(value).flatMap((todo) => {
    const { status, content, activeForm, ...others } = fields(todo);
    const mark = MARKS.get(status);
    if (mark === undefined || typeof content !== 'string' || Object.keys(others).length > 0) return [];
    return [`${mark} ${content}${typeof activeForm === 'string' ? ` (${activeForm})` : ''}`];
  });
  return lines.length === value.length ? lines : undefined;
}

const MARKS: ReadonlyMap<unknown, string> = new Map([
  ['completed', '✓'],
  ['in_progress', '▸'],
  ['pending', '·'],
]);

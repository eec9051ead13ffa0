import type { ComponentChild } from 'preact';
import type { ApiRequest } from '../../../src/schema/api.ts';
import { pathWithin } from '../text/words.ts';
import { fields, list, text, type Fields } from '../timeline/event-data.ts';
import { Code, Visible } from './plain-text.tsx';
import { EditDiff, Markdown } from './rich.tsx';

interface Props {
  toolName: string;
  input: Fields;
  cwd: string;
  /** Where the edit goes, if known. */
  place?: ApiRequest['edit'];
}

/** Everything that a tool is called with: its main field in a suitable form, then the rest. */
export function ToolInput({ toolName, input, cwd, place }: Props) {
  const { shown, used } = mainPart(toolName, input, cwd, place);
  const rest = Object.entries(input).filter(([name]) => !used.includes(name));
  return (
    <div class="tool-input">
      {shown}
      {rest.length > 0 && (
        <dl class="fields">
          {rest.map(([name, value]) => (
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
      )}
      {rest.length === 0 && shown === undefined && <p class="quiet">Called without any input.</p>}
    </div>
  );
}

interface MainPart {
  readonly shown: ComponentChild;
  readonly used: readonly string[];
}

function mainPart(toolName: string, input: Fields, cwd: string, place: Props['place']): MainPart {
  const filePath = text(input['file_path']);
  const command = text(input['command']);
  const before = text(input['old_string']);
  const after = text(input['new_string']);
  const content = text(input['content']);
  const plan = text(input['plan']);
  if (toolName === 'Bash' && command !== undefined) {
    const description = text(input['description']);
    return {
      shown: (
        <>
          <Code text={command} label="Command" tone="command" longest={Infinity} />
          {description !== undefined && (
            <p class="quiet">
              <Visible text={description} />
            </p>
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
          <EditDiff
            before={before}
            after={after}
            firstLine={place?.line}
            linesBefore={place?.before}
            linesAfter={place?.after}
            label={`Changes in ${filePath}`}
          />
        </>
      ),
      used: ['file_path', 'old_string', 'new_string', ...(input['replace_all'] === false ? ['replace_all'] : [])],
    };
  }
  if (toolName === 'Write' && filePath !== undefined && content !== undefined) {
    return {
      shown: (
        <>
          <Path path={filePath} cwd={cwd} note="whole file" />
          <EditDiff before="" after={content} firstLine={1} label={`Content of ${filePath}`} />
        </>
      ),
      used: ['file_path', 'content'],
    };
  }
  if (toolName === 'MultiEdit' && filePath !== undefined && Array.isArray(input['edits'])) {
    return {
      shown: (
        <>
          <Path path={filePath} cwd={cwd} />
          {list(input['edits']).map((edit) => (
            <EditDiff
              before={text(fields(edit)['old_string']) ?? ''}
              after={text(fields(edit)['new_string']) ?? ''}
              label={`Changes in ${filePath}`}
            />
          ))}
        </>
      ),
      used: ['file_path', 'edits'],
    };
  }
  if (toolName === 'ExitPlanMode' && plan !== undefined) {
    return { shown: <Markdown text={plan} />, used: ['plan'] };
  }
  if (toolName === 'TodoWrite' && Array.isArray(input['todos'])) {
    return { shown: <Code text={todoLines(input).join('\n')} label="List" />, used: ['todos'] };
  }
  if ((toolName === 'Agent' || toolName === 'Task') && text(input['prompt']) !== undefined) {
    return { shown: <Markdown text={text(input['prompt']) ?? ''} />, used: ['prompt'] };
  }
  return { shown: undefined, used: [] };
}

export function Path({ path, cwd, note }: { path: string; cwd: string; note?: string }) {
  return (
    <p class="path" title={path}>
      <Visible text={pathWithin(path, cwd)} />
      {note !== undefined && <span class="quiet"> · {note}</span>}
    </p>
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
  return <Code text={words} label={name} longest={40_000} />;
}

function todoLines(input: Fields): string[] {
  return list(input['todos']).map((todo) => {
    const { status, content } = fields(todo);
    return `${status === 'completed' ? '✓' : status === 'in_progress' ? '▸' : '·'} ${text(content) ?? ''}`;
  });
}

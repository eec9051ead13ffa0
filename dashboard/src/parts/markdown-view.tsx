import type { ComponentChild } from 'preact';
import { useMemo } from 'preact/hooks';
import { parseBlocks, parseInline, safeHref, type Block, type Inline } from '../text/markdown.ts';
import { Unfolded, useIsInput } from './part.tsx';
import { Code, Visible } from './plain-text.tsx';

const MAX_LENGTH = 200_000;
/** Fences that hold no code, or do not say what they hold. */
const PLAIN = /^(?:$|te?xt\b|plain|output|log\b|console\b|markdown\b|md\b)/i;

export function MarkdownView({ text }: { text: string }) {
  const blocks = useMemo(() => (text.length > MAX_LENGTH ? undefined : parseBlocks(text)), [text]);
  if (!blocks) return <Code text={text} label="Long text" />;
  return (
    <div class="markdown">
      <Unfolded>{blocks.map(showBlock)}</Unfolded>
    </div>
  );
}

function showBlock(block: Block): ComponentChild {
  switch (block.kind) {
    case 'heading': {
      // The page uses the levels above.
      const Heading = `h${Math.min(6, block.level + 2)}` as 'h3';
      return <Heading>{inline(block.text)}</Heading>;
    }
    case 'paragraph':
      return <p>{inline(block.text)}</p>;
    case 'code':
      return (
        <>
          {block.info !== '' && (
            <p class="code-info quiet">
              <Visible text={block.info} />
            </p>
          )}
          <Code text={block.text} label="Code" tone={PLAIN.test(block.info) ? 'output' : 'code'} />
        </>
      );
    case 'quote':
      return <blockquote>{block.blocks.map(showBlock)}</blockquote>;
    case 'rule':
      return <hr />;
    case 'table':
      return (
        <div class="table-scroll" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                {block.head.map((cell) => (
                  <th scope="col">{inline(cell)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row) => (
                <tr>
                  {row.map((cell) => (
                    <td>{inline(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case 'list': {
      const items = block.items.map(({ done, blocks }) => (
        <li class={done === undefined ? undefined : 'task'}>
          {done !== undefined && <span class="task-mark">{done ? '☑' : '☐'} </span>}
          {blocks.length === 1 && blocks[0]?.kind === 'paragraph' ? inline(blocks[0].text) : blocks.map(showBlock)}
        </li>
      ));
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
  }
}

function inline(text: string): ComponentChild[] {
  return parseInline(text).map(showInline);
}

function showInline(part: Inline): ComponentChild {
  switch (part.kind) {
    case 'text':
      return <Visible text={part.text} />;
    case 'code':
      return (
        <code>
          <Visible text={part.text} />
        </code>
      );
    case 'strong':
      return <strong>{part.parts.map(showInline)}</strong>;
    case 'emphasis':
      return <em>{part.parts.map(showInline)}</em>;
    case 'strike':
      return <s>{part.parts.map(showInline)}</s>;
    case 'link':
      return <Link link={part} />;
    case 'break':
      return <br />;
  }
}

type LinkPart = Extract<Inline, { kind: 'link' }>;

/** A link that does not show its destination is shown with its host; in an input that somebody decides on, in full. */
function Link({ link }: { link: LinkPart }) {
  const isInput = useIsInput();
  const { href, title, parts } = link;
  return (
    <>
      <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
        {parts.map(showInline)}
      </a>
      {!saysWhere(link) && (
        <span class="quiet">
          {' '}
          (<Visible text={isInput ? href : new URL(href).host} />)
        </span>
      )}
      {title !== '' && (
        <span class="quiet">
          {' “'}
          <Visible text={title} />”
        </span>
      )}
    </>
  );
}

function saysWhere({ href, parts }: LinkPart): boolean {
  const [only, ...others] = parts;
  return only?.kind === 'text' && others.length === 0 && safeHref(only.text) === href;
}

import type { TsdownPlugin } from 'tsdown';
import { NOTE_KEYS } from '../../src/schema/notes.ts';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [part: string]: unknown;
}

/** Removes `.meta({ note: … })` from the schemas: the reference is generated from the sources, the server never reads it. */
export function withoutNotes(): TsdownPlugin {
  return {
    name: 'without-notes',
    transform: {
      order: 'pre',
      filter: { id: /[\\/]src[\\/](schema|mcp)[\\/].*\.ts$/, code: '.meta(' },
      handler(code) {
        const program = this.parse(code, { lang: 'ts' }) as unknown as Node;
        // Keeps the line breaks, so that the lines of the source map stay right.
        const text = noteCalls(program).reduceRight(
          (rest, [start, end]) =>
            rest.slice(0, start) + rest.slice(start, end).replaceAll(/[^\n]/g, '') + rest.slice(end),
          code,
        );
        return { code: text, map: null };
      },
    },
  };
}

/** Where each `.meta({ … })` with nothing but notes is, from the dot to the closing parenthesis, in order. */
function noteCalls(node: Node): [start: number, end: number][] {
  const inside = Object.values(node)
    .flat()
    .filter(isNode)
    .filter((part) => !isNotes(node) || part === node['callee'])
    .flatMap(noteCalls);
  const callee = node['callee'] as Node | undefined;
  const object = callee?.['object'] as Node | undefined;
  const own: [number, number][] = isNotes(node) && object ? [[object.end, node.end]] : [];
  return [...inside, ...own].sort(([one], [other]) => one - other);
}

function isNotes({ type, callee, arguments: given }: Node): boolean {
  if (type !== 'CallExpression' || !isNode(callee) || !isNode(callee['property'])) return false;
  const [meta] = given as Node[];
  return (
    callee['property']['name'] === 'meta' &&
    meta?.type === 'ObjectExpression' &&
    (meta['properties'] as Node[]).every(
      ({ key }) => isNode(key) && (NOTE_KEYS as readonly unknown[]).includes(key['name']),
    )
  );
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

import { z } from 'zod';
import type { QuestionAnswer } from '../../schema/commands.ts';
import type { RequestRecord } from '../../schema/events.ts';
import { oneLine } from '../../engine/conversation/tool-summary.ts';
import type { Asker } from '../../engine/requests/approvals.ts';
import { whereAsked, type Form, type FormAbilities } from './form.ts';

const OTHER = 'Something else (write it below)';

const option = z.object({ label: z.string(), description: z.string().optional().catch(undefined) });

const question = z.object({
  question: z.string(),
  header: z.string().optional().catch(undefined),
  multiSelect: z.boolean().optional().catch(undefined),
  options: z.array(option).catch([]),
});

type Question = z.infer<typeof question>;
type Properties = Form['requestedSchema']['properties'];

/** One question of a form: what it shows, and how its part of the answer is read. */
interface Part {
  lines: string[];
  properties: Properties;
  required: string[];
  read(content: Record<string, unknown>): QuestionAnswer | undefined;
}

/** One field per question, and room for a free-text answer. */
export function questionForm(asker: Asker, { ask }: RequestRecord, { multiSelect }: FormAbilities): Form {
  const asked = questionsOf(ask.input['questions']);
  const parts = asked.map((one, index) => partFor(one, index + 1, multiSelect));
  return {
    message: [
      asked.length === 1 ? 'Claude asks:' : `Claude asks ${asked.length} questions:`,
      ...parts.flatMap(({ lines }) => lines),
      whereAsked(asker),
    ].join('\n'),
    requestedSchema: {
      type: 'object',
      properties: Object.assign({}, ...parts.map(({ properties }) => properties)) as Properties,
      required: parts.flatMap(({ required }) => required),
    },
    read(given) {
      if (typeof given !== 'object' || given === null || parts.length === 0) return undefined;
      const answers = parts.map((part) => part.read(given as Record<string, unknown>));
      return answers.every((answer) => answer !== undefined) ? { decision: 'allow', answers } : undefined;
    },
    declined: 'The user does not want to answer this. Continue without the answer if you can.',
  };
}

function questionsOf(given: unknown): Question[] {
  if (!Array.isArray(given)) return [];
  return given.flatMap((one) => question.safeParse(one).data ?? []);
}

function partFor(asked: Question, number: number, multiSelect: boolean): Part {
  const text = oneLine(asked.question, 4_000);
  const heading: Heading = {
    lines: [`${number}. ${text}`, ...asked.options.map(describeOption)],
    title: oneLine(asked.header ?? `Question ${number}`, 60),
    description: text,
    name: `answer_${number}`,
  };
  const labels = labelsOf(asked);
  if (labels.size === 0) return textPart(heading);
  if (asked.multiSelect !== true) return choicePart(heading, labels);
  if (multiSelect) return choicesPart(heading, labels);
  return textPart({ ...heading, description: `${text} (one or more, separated by commas)` });
}

function describeOption({ label, description }: z.infer<typeof option>): string {
  return `  – ${oneLine(description === undefined ? label : `${label}: ${description}`, 4_000)}`;
}

interface Heading {
  lines: string[];
  title: string;
  description: string;
  name: string;
}

/** The displayed form of each label, and the label itself: Claude gets its own words back. */
function labelsOf({ options }: Question): Map<string, string> {
  return new Map(options.map(({ label }) => [oneLine(label, 200), label]));
}

function textPart({ lines, title, description, name }: Heading): Part {
  return {
    lines,
    properties: { [name]: { type: 'string', title, description, minLength: 1 } },
    required: [name],
    read: (content) => ownText(content[name])?.[0],
  };
}

function choicePart({ lines, title, description, name }: Heading, labels: Map<string, string>): Part {
  const own = `${name}_other`;
  return {
    lines,
    properties: {
      [name]: { type: 'string', title, description, enum: choicesOf(labels) },
      [own]: { type: 'string', title: `${title}: own answer` },
    },
    required: [name],
    read: (content) => joined([content[name]], content[own], labels)?.join(', '),
  };
}

function choicesPart({ lines, title, description, name }: Heading, labels: Map<string, string>): Part {
  const own = `${name}_other`;
  return {
    lines,
    properties: {
      [name]: {
        type: 'array',
        title,
        description,
        minItems: 1,
        items: { type: 'string', enum: choicesOf(labels) },
      },
      [own]: { type: 'string', title: `${title}: own answer` },
    },
    required: [name],
    read: (content) => {
      const chosen = content[name];
      return Array.isArray(chosen) ? joined(chosen, content[own], labels) : undefined;
    },
  };
}

function choicesOf(labels: Map<string, string>): string[] {
  return [...new Set([...labels.keys(), OTHER])];
}

/** The chosen labels and the free text; nothing that the person said is dropped. */
function joined(chosen: unknown[], own: unknown, labels: Map<string, string>): string[] | undefined {
  const choices = choicesOf(labels);
  const fits = chosen.every((choice) => choices.includes(choice as string));
  if (!fits || (own != null && typeof own !== 'string')) return undefined;
  const said = chosen.flatMap((choice) => labels.get(choice as string) ?? []);
  const answers = [...new Set([...said, ...(ownText(own) ?? [])])];
  return answers.length > 0 ? answers : undefined;
}

function ownText(value: unknown): [string] | undefined {
  return typeof value === 'string' && value.trim() !== '' ? [value.trim()] : undefined;
}

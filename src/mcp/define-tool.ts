import type { z } from 'zod';
import type { EngineClient } from '../engine/client.ts';
import type { CommandOf } from '../schema/commands.ts';
import type { Started } from '../engine/elsewhere/elsewhere.ts';
import type { Arguments } from './arguments.ts';
import type { CallForms } from './forms/call-forms.ts';
import type { AnswerTurn } from './outbox.ts';

export interface ToolContext {
  /** What this client may use of the engine. */
  engine: EngineClient;
  /** Aborted when the client cancels the call or goes away. */
  signal: AbortSignal;
  /** Reports progress to a waiting client; does nothing if it did not ask. */
  progress: ((line: string) => void) | undefined;
  /** How this call shows forms, if the protocol requires calls to do that. */
  forms: CallForms | undefined;
  /** Where a session works if the caller names no directory: the folder the client has open. */
  defaultDirectory: string | undefined;
  /** What an earlier server has done of this call, if it is a repeat. */
  part?: CallPart | undefined;
  /** Taken before a large answer is put together, where unread answers are counted. */
  turn?: AnswerTurn | undefined;
}

/** The part of a call that changes something: it is done once, however often the call is sent under its key. */
export interface CallPart {
  readonly before: Started | undefined;
  /** Keeps what was done, for a repeat after this server is gone. */
  readonly note: (started: Started) => void;
}

export interface ToolAnnotations {
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  openWorldHint: boolean;
}

export interface Tool {
  name: string;
  title: string;
  describe: (knownTools: readonly string[] | undefined) => string;
  annotations: ToolAnnotations;
  /** Built when first needed: listing the tools must not pay for it. */
  input: () => z.ZodObject;
  output: () => z.ZodObject;
  /** Names accepted at top level besides those of the schema. */
  flatNames: readonly string[];
  normalize: (args: Arguments) => Arguments;
  /** Whether a call changes nothing: it can be repeated at will, so no key makes its answer worth storing. */
  isRead: (args: Arguments) => boolean;
  /** The parameter that names the directory of a new session. */
  directoryParameter?: string;
  run: (input: never, context: ToolContext) => Promise<object>;
  /** The object that reports an error. */
  failure: (error: string, args: Arguments) => object;
}

export interface ToolSpec<Input extends z.ZodObject> extends Omit<
  Tool,
  'input' | 'run' | 'flatNames' | 'normalize' | 'isRead' | 'failure'
> {
  input: () => Input;
  flatNames?: readonly string[];
  normalize?: (args: Arguments) => Arguments;
  /** Whether the annotations say so, unless it depends on the arguments. */
  isRead?: (args: Arguments) => boolean;
  run: (input: z.infer<Input>, context: ToolContext) => Promise<object>;
  failure?: (error: string, args: Arguments) => object;
}

export function defineTool<Input extends z.ZodObject>(spec: ToolSpec<Input>): Tool {
  return {
    flatNames: [],
    normalize: (args) => args,
    isRead: () => spec.annotations.readOnlyHint,
    failure: (error, args) => ({ sessionId: sessionIdOf(args), isError: true, error }),
    ...spec,
    input: once(spec.input),
    output: once(spec.output),
  };
}

/** A schema is compiled on first use: creating one per call would compile it every time. */
function once<Schema>(make: () => Schema): () => Schema {
  let made: Schema | undefined;
  return () => (made ??= make());
}

export function sessionIdOf(args: Arguments): string {
  return typeof args['sessionId'] === 'string' ? args['sessionId'].slice(0, 200) : '';
}

/** What the response to a start or a message should also mention. */
export function shownWarnings(warnings: readonly string[]): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
}

/**
 * Does the part of a call that changes something, unless it was done before: a call repeated with the answers to its
 * forms, or after its server was gone, only waits and reads.
 */
export async function carriedOut<Kind extends 'start' | 'reply' | 'respond'>(
  context: ToolContext,
  command: CommandOf<Kind>,
  waitMs = 0,
): Promise<Started> {
  const { engine, forms, part } = context;
  const [first, ...others] = (forms?.sessionIds ?? []).map((sessionId) => ({ sessionId, warnings: [] }));
  if (first) return others.length === 0 ? first : { ...first, attempts: [first, ...others] };
  if (part?.before) return part.before;
  const started: Started = await engine.execute<Kind>(command);
  if (waitMs > 0) part?.note(started);
  return started;
}

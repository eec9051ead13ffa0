import type { ParameterNote } from '../../schema/option-notes.ts';

/** What a person reads about one tool besides what the schema says. Only the documents are made from it. */
export interface ToolNotes {
  /** By path: `pollOptions.maxBytes`. A session option that is missing here is described with the options. */
  readonly parameters: Readonly<Record<string, ParameterNote>>;
  /** Objects whose session options are described with another tool. */
  readonly describedElsewhere?: readonly string[];
  /** The tool that returns all of this as well: its page says what the fields mean. */
  readonly returnsLike?: string;
  /** By path: `result.isError`; a list is written as `actions[].requestId`. */
  readonly returns: Readonly<Record<string, string>>;
}

import type { ParameterNote } from '../../schema/option-notes.ts';

/** What people read about one tool beyond the schema. Only the documentation is generated from it. */
export interface ToolNotes {
  /** By path: `pollOptions.maxBytes`. A session option that is missing here is described with the options. */
  readonly parameters: Readonly<Record<string, ParameterNote>>;
  /** Objects whose session options are documented with another tool. */
  readonly describedElsewhere?: readonly string[];
  /** The tool that returns all of this too: its page explains the fields. */
  readonly returnsLike?: string;
  /** By path: `result.isError`; a list is written as `actions[].requestId`. */
  readonly returns: Readonly<Record<string, string>>;
}

import type { ElicitRequestFormParams } from '@modelcontextprotocol/server';
import type { Answer } from '../../engine/answer.ts';

/** What a person is shown about one request, and how their answer is read. */
export interface Form {
  readonly message: string;
  readonly requestedSchema: ElicitRequestFormParams['requestedSchema'];
  /** What an accepted form says; `undefined` when the content does not fit what was asked for. */
  read(content: unknown): Answer | undefined;
  /** What Claude is told when the person declines. */
  readonly declined: string;
}

/** What a client can show. */
export interface FormAbilities {
  /** Lists of choices: since protocol 2025-11-25. */
  readonly multiSelect: boolean;
}

/** Which session asks; a person may have several. */
export interface Asker {
  readonly id: string;
  readonly cwd: string | undefined;
}

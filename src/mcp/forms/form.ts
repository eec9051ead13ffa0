import type { ElicitRequestFormParams } from '@modelcontextprotocol/server';
import type { Answer } from '../../schema/commands.ts';
import type { AskingSession, FormEnd } from '../../engine/requests/approvals.ts';

/** What a person is shown about one request, and how their answer is read. */
export interface Form {
  readonly message: string;
  readonly requestedSchema: ElicitRequestFormParams['requestedSchema'];
  /** What an accepted form says; `undefined` if the content is not what was asked for. */
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
export type Asker = Pick<AskingSession, 'id' | 'options'>;

/** What the client sent back for a form, or why nothing usable came. */
export type FormReturn =
  { action: 'accept' | 'decline' | 'cancel'; content?: unknown } | { action: 'failed'; why: string };

/** What it means for the request. */
export function formEnd(form: Form, returned: FormReturn): FormEnd {
  switch (returned.action) {
    case 'accept': {
      const answer = form.read(returned.content);
      return answer
        ? { kind: 'answered', answer }
        : { kind: 'closed', why: 'the form returned something other than what was asked for' };
    }
    case 'decline':
      return { kind: 'answered', answer: { decision: 'deny', message: form.declined } };
    case 'cancel':
      return { kind: 'closed', why: 'the form was closed without an answer' };
    case 'failed':
      return { kind: 'lost', why: `the form failed: ${returned.why}` };
  }
}

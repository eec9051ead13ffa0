/** The jobs that a caller has Claude Code do, and what they leave behind. */

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { reply, text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import type { Answer } from '../../test/e2e/text-caller.ts';
import type { Json } from '../../test/harness/json.ts';
import type { CallerServer } from './row.ts';

export const TOOL_CALLS = 40;
const QUESTION = 'Which colour?';
export const QUESTION_JOB = 'one question and three permissions';

export interface Job {
  readonly what: string;
  readonly replies: readonly MessageReply[];
  /** Claude's last words. */
  readonly claim: string;
  readonly decide: (request: Json) => Answer;
  readonly most: { readonly calls: number; readonly bytes: number };
}

const allow = (): Answer => ({ decision: 'allow', answers: { [QUESTION]: 'red' } });
const touch = (name: string): MessageReply => tool('Bash', { command: `touch ${name}`, description: `make ${name}` });

/** The file that the last job would fetch, and that its caller does not want. */
const DOWNLOAD = 'download';

/** `fetch`: the command that the last job asks for. */
export function jobsIn(project: string, fetch = `touch ${DOWNLOAD}`): Job[] {
  const file = path.join(project, 'module.ts');
  const options = ['red', 'blue'].map((label) => ({ label, description: `paint it ${label}` }));
  const questions = [{ question: QUESTION, header: 'Colour', multiSelect: false, options }];
  const job = (what: string, most: Job['most'], replies: readonly MessageReply[], claim: string): Job => ({
    what,
    replies: [...replies, text(claim)],
    claim,
    decide: allow,
    most,
  });
  const reads = Array.from({ length: TOOL_CALLS }, (_, index) => tool('Read', { file_path: file, offset: index + 1 }));
  const questionAndTouches = [
    tool('AskUserQuestion', { questions }),
    touch('two.txt'),
    touch('three.txt'),
    touch('four.txt'),
  ];
  return [
    job('a short answer', { calls: 1, bytes: 800 }, [], 'Four.'),
    job('one approval', { calls: 2, bytes: 2_500 }, [touch('one.txt')], 'Made it.'),
    job(QUESTION_JOB, { calls: 5, bytes: 7_500 }, questionAndTouches, 'Done.'),
    job(`${TOOL_CALLS} tools`, { calls: 3, bytes: 2_000 }, reads, 'All is well: the module reads as it should.'),
    {
      ...job(
        'a refused command and a false claim',
        { calls: 2, bytes: 3_000 },
        [
          reply().text('I fetch it.').tool('Bash', { command: fetch, description: 'download' }),
          tool('Bash', { command: 'ls no-such-file', description: 'look' }),
        ],
        'Downloaded and checked.',
      ),
      decide: () => ({ decision: 'deny', message: 'no downloads' }),
    },
  ];
}

export async function prepareProject(project: string): Promise<void> {
  await writeFile(path.join(project, 'module.ts'), 'export const line = "some code that is read";\n'.repeat(60));
}

const WANTED = ['one', 'two', 'three', 'four'].map((name) => `${name}.txt`);

/** What the jobs left in the project. */
export function leftIn(project: string): Pick<CallerServer, 'made' | 'ranRefused'> {
  const isThere = (name: string): boolean => existsSync(path.join(project, name));
  return {
    made: `${String(WANTED.filter(isThere).length)} of ${String(WANTED.length)}`,
    ranRefused: isThere(DOWNLOAD),
  };
}

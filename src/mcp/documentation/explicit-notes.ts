import { workReturns } from './work-returns.ts';
import type { ToolNotes } from './tool-notes.ts';

const FAILURE = {
  isError: '`true` if the call failed.',
  error: 'What went wrong and what to do about it.',
};

const warnings = 'What to know besides, such as rules that Claude Code ignores; left out when there is nothing.';
const waitMs = {
  meaning:
    'Wait this long, at most, for the session to rest or to ask something; the answer then has all that `claude_get_status` would say.',
  default: '0: answer at once',
};

const sessionId = { meaning: 'The session.' };

export const EXPLICIT_NOTES: Readonly<Record<string, ToolNotes>> = {
  claude_create_session: {
    parameters: {
      prompt: { meaning: 'The task. Not blank.' },
      waitMs,
      workingDirectory: {
        meaning: 'Directory to work in; it must exist.',
        default: 'the first root of the client, else the server’s working directory',
      },
      permissionMode: {
        meaning:
          '`default` asks before anything risky; `acceptEdits` lets file edits pass; `plan` only plans and asks before it begins; ' +
          '`bypassPermissions` asks nothing and needs the operator’s `ALLOW_BYPASS`.',
        default: 'as the user’s Claude Code is set up',
      },
      systemPrompt: { meaning: 'Added to Claude Code’s own system prompt.', default: 'nothing added' },
      dangerouslySkipPermissions: {
        meaning: 'The same as `permissionMode` `bypassPermissions`; needs the operator’s `ALLOW_BYPASS`.',
        default: '`false`',
      },
    },
    returnsLike: 'claude_get_status',
    returns: {
      effective: 'Permission mode, directory and accepted rules of the session, in one line.',
      warnings,
    },
  },

  claude_send_message: {
    parameters: {
      sessionId: {
        meaning: 'The session; also one that only the disk remembers, or that a person made in the terminal.',
      },
      message: {
        meaning: 'What to say. A session that works takes it up when its turn can; one at rest goes on with it.',
      },
      fork: {
        meaning: 'The message goes to a copy of the session with a new id; the original stays as it is.',
        default: '`false`',
      },
      waitMs,
    },
    returnsLike: 'claude_get_status',
    returns: { warnings },
  },

  claude_get_status: {
    parameters: {
      sessionId,
      turn: {
        meaning: '`last`: `recentOutput` and `toolUseEvents` since the last message; `all`: from the oldest kept.',
        default: '`last`',
      },
      outputLines: { meaning: 'How many lines of `recentOutput` to return.', default: '50' },
      waitMs: {
        meaning:
          'Wait this long, at most, for the session to rest or to ask something. While a person is asked by a form, the wait goes on.',
        default: '0: answer at once',
      },
      inputId: {
        meaning: 'Show this one of `pendingInputs` whole, however long it is.',
        default: 'up to 32,000 characters of each',
      },
    },
    returns: {
      sessionId: 'Id of the session.',
      status: '`running`, `waiting_for_input`, `completed`, `error` or `interrupted`.',
      result: 'The final answer, at rest.',
      recentOutput: 'The last lines of what Claude wrote since the last message, and is writing.',
      pendingInputs: 'One for each unanswered request.',
      'pendingInputs[].inputId': 'What `claude_respond` needs.',
      'pendingInputs[].type': '`permission`, `plan_review` or `user_question`.',
      'pendingInputs[].toolName': 'The tool that asks.',
      'pendingInputs[].toolInput': 'What it was called with.',
      'pendingInputs[].inputTruncated':
        '`true` if it is longer than 32,000 characters and shown shortened; `inputId` shows all of it.',
      'pendingInputs[].inputChars': 'Characters of the whole, when it is shown shortened.',
      'pendingInputs[].description': 'The same in words.',
      'pendingInputs[].askedPerson':
        '`true` while a person has a form about it on the screen: a wait holds until they decide or close it.',
      'pendingInputs[].expiresAt': 'When it is denied for want of an answer.',
      'pendingInputs[].expiresInMs': 'How long that is from now.',
      'pendingInputs[].onExpiry': '`deny`: what happens then.',
      'pendingInputs[].cwd': 'The directory of the session.',
      'pendingInputs[].said': 'What Claude said last before it asked, in one line.',
      'pendingInputs[].edit': 'For an edit: where in the file.',
      'pendingInputs[].edit.line': 'The line it begins at.',
      'pendingInputs[].edit.before': 'Up to two lines before it.',
      'pendingInputs[].edit.after': 'Up to two lines after it.',
      'pendingInputs[].alwaysAllows': 'What “always allow” would allow, for this session only.',
      toolUseEvents: 'The tools that were used since the last message.',
      'toolUseEvents[].toolName': 'Name of the tool.',
      'toolUseEvents[].status': '`running`, `awaiting_permission`, `completed`, `denied` or `failed`.',
      'toolUseEvents[].input': 'What it ran with, in one line.',
      'toolUseEvents[].inputChanged': '`true` if an answer changed the input.',
      'toolUseEvents[].error': 'The end of its output when it failed, or what Claude was told when it was denied.',
      'toolUseEvents[].deniedBy':
        'Who denied it: `caller`, `human`, `disallowedTools`, `settings` (rules or hooks of the user), `timeout` or `policy` (the operator, the permission mode).',
      'toolUseEvents[].inputId': 'While it waits: which of `pendingInputs` it is.',
      work: 'At rest: evidence of what was done, whatever the result claims.',
      ...workReturns('work'),
      effective: 'From `claude_create_session`: what the session runs under.',
      warnings,
      costUsd: 'Cost of the session so far, in US dollars; left out until it is known.',
      costUnknown:
        '`true` if it cost more than that: a turn whose process was killed never told its cost, and no budget counts it.',
      turnCount: 'Turns of the session so far.',
      ...FAILURE,
      error: 'Why the session or the call failed.',
    },
  },

  claude_respond: {
    parameters: {
      sessionId,
      inputId: { meaning: 'Which of `pendingInputs` is answered.' },
      decision: {
        meaning: '`allow` or `deny`. For a plan: `allow` starts the work, `deny` asks for another plan.',
      },
      waitMs,
      reason: { meaning: 'With `deny`: what Claude is told.', default: 'a plain refusal' },
      updatedInput: {
        meaning: 'With `allow`: run the tool with this input in place of the whole one asked for.',
        default: 'the input asked for',
      },
      answers: {
        meaning:
          'Answers to a question: `{"<question text>": "<label or text>"}`, or a list in the order of the questions; several labels as a list. Also accepted inside `updatedInput`.',
        default: 'none',
      },
    },
    returnsLike: 'claude_get_status',
    returns: {},
  },

  claude_interrupt: {
    parameters: { sessionId },
    returns: {
      sessionId: 'Id of the session.',
      status: '`interrupted`; the session takes messages afterwards.',
      ...FAILURE,
    },
  },

  claude_list_sessions: {
    parameters: {
      projectDirectory: { meaning: 'Only sessions of this directory.', default: 'all' },
      limit: { meaning: 'The most sessions, newest first.', default: '50' },
    },
    returns: {
      sessions: 'Every session that Claude Code keeps on this machine.',
      'sessions[].sessionId': 'Id of the session.',
      'sessions[].projectDirectory': 'Its directory.',
      'sessions[].displayText': 'Its title or first words.',
      'sessions[].timestamp': 'When something last happened in it.',
      'sessions[].isActive': 'Whether it has a process of this server.',
      'sessions[].activeStatus': 'Its status here, if it is active.',
      ...FAILURE,
    },
  },
};

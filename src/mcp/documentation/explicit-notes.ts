import { workReturns } from './work-returns.ts';
import type { ToolNotes } from './tool-notes.ts';

const FAILURE = {
  isError: '`true` if the call failed.',
  error: 'What went wrong and what to do about it.',
};

const warnings = 'Things to be aware of, such as rules that Claude Code ignores; omitted if there are none.';
const waitMs = {
  meaning:
    'Wait up to this long for the session to finish or ask something; the answer then has everything that `claude_get_status` would return.',
  default: '0: return immediately',
};

const sessionId = { meaning: 'The session.' };

export const EXPLICIT_NOTES: Readonly<Record<string, ToolNotes>> = {
  claude_create_session: {
    parameters: {
      prompt: { meaning: 'The task. Not blank.' },
      waitMs,
      workingDirectory: {
        meaning: 'Directory to work in; it must exist.',
        default: 'the client’s first root, else the server’s working directory',
      },
      permissionMode: {
        meaning:
          '`default` asks before anything risky; `acceptEdits` allows file edits; `plan` only plans and asks before it starts; ' +
          '`bypassPermissions` never asks and requires the operator’s `ALLOW_BYPASS`.',
        default: 'from the user’s Claude Code settings',
      },
      systemPrompt: { meaning: 'Added to Claude Code’s own system prompt.', default: 'nothing added' },
      dangerouslySkipPermissions: {
        meaning: 'The same as `permissionMode` `bypassPermissions`; requires the operator’s `ALLOW_BYPASS`.',
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
        meaning: 'The session; may also be one that exists only on disk or was started in a terminal.',
      },
      message: {
        meaning: 'What to say. A working session takes it up when it can; an idle one continues with it.',
      },
      fork: {
        meaning: 'The message goes to a copy of the session with a new id; the original is unchanged.',
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
        meaning:
          '`last`: `recentOutput` and `toolUseEvents` since the last message; `all`: from the oldest event kept.',
        default: '`last`',
      },
      outputLines: { meaning: 'How many lines of `recentOutput` to return.', default: '50' },
      waitMs: {
        meaning:
          'Wait up to this long for the session to finish or ask something. The wait continues while a person has a form open.',
        default: '0: return immediately',
      },
      inputId: {
        meaning: 'Show this one of `pendingInputs` in full, however long it is.',
        default: 'up to 32,000 characters of each',
      },
    },
    returns: {
      sessionId: 'Id of the session.',
      status: '`running`, `waiting_for_input`, `completed`, `error` or `interrupted`.',
      result: 'The final answer, at rest.',
      recentOutput:
        'The last lines of what Claude has written since the last message, including text still being written.',
      pendingInputs: 'One for each unanswered request.',
      'pendingInputs[].inputId': 'What `claude_respond` needs.',
      'pendingInputs[].type': '`permission`, `plan_review` or `user_question`.',
      'pendingInputs[].toolName': 'The tool that needs permission.',
      'pendingInputs[].toolInput': 'What it was called with.',
      'pendingInputs[].inputTruncated':
        '`true` if it is longer than 32,000 characters and truncated; `inputId` shows all of it.',
      'pendingInputs[].inputChars': 'Full length in characters, if truncated.',
      'pendingInputs[].description': 'The same in words.',
      'pendingInputs[].askedPerson':
        '`true` while a person has a form for it open: a wait continues until they decide or close it.',
      'pendingInputs[].expiresAt': 'When it is denied if unanswered.',
      'pendingInputs[].expiresInMs': 'How long that is from now.',
      'pendingInputs[].onExpiry': '`deny`: what happens then.',
      'pendingInputs[].cwd': 'The directory of the session.',
      'pendingInputs[].said': 'What Claude said last before it asked, in one line.',
      'pendingInputs[].edit': 'For an edit: where in the file.',
      'pendingInputs[].edit.line': 'The line it begins at.',
      'pendingInputs[].edit.before': 'Up to two lines before it.',
      'pendingInputs[].edit.after': 'Up to two lines after it.',
      'pendingInputs[].alwaysAllows': 'What “always allow” would allow, for this session only.',
      toolUseEvents: 'The tools used since the last message.',
      'toolUseEvents[].toolName': 'Name of the tool.',
      'toolUseEvents[].status': '`running`, `awaiting_permission`, `completed`, `denied` or `failed`.',
      'toolUseEvents[].input': 'What it ran with, in one line.',
      'toolUseEvents[].inputChanged': '`true` if an answer changed the input.',
      'toolUseEvents[].error': 'The end of its output when it failed, or what Claude was told when it was denied.',
      'toolUseEvents[].deniedBy':
        'Who denied it: `caller`, `human`, `disallowedTools`, `settings` (rules or hooks of the user), `timeout` or `policy` (the operator, the permission mode).',
      'toolUseEvents[].inputId': 'While it waits: which of `pendingInputs` it is.',
      work: 'At rest: evidence of what was done, regardless of what the result claims.',
      ...workReturns('work'),
      effective: 'From `claude_create_session`: the settings the session runs under.',
      warnings,
      costUsd: 'Cost of the session so far, in US dollars; omitted until known.',
      costUnknown:
        '`true` if the actual cost is higher: the process was killed during a turn, so its cost was never reported and counts towards no budget.',
      turnCount: 'Turns of the session so far.',
      ...FAILURE,
      error: 'Why the session or the call failed.',
    },
  },

  claude_respond: {
    parameters: {
      sessionId,
      inputId: { meaning: 'Which of `pendingInputs` to answer.' },
      decision: {
        meaning: '`allow` or `deny`. For a plan: `allow` starts the work, `deny` asks for another plan.',
      },
      waitMs,
      reason: { meaning: 'With `deny`: what Claude is told.', default: 'a generic refusal' },
      updatedInput: {
        meaning: 'With `allow`: run the tool with this input in place of the whole one asked for.',
        default: 'the requested input',
      },
      answers: {
        meaning:
          'Answers to a question: `{"<question text>": "<label or text>"}`, or a list in the order of the questions; multiple labels as a list. Also accepted inside `updatedInput`.',
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
      status: '`interrupted`; the session accepts messages afterwards.',
      ...FAILURE,
    },
  },

  claude_list_sessions: {
    parameters: {
      projectDirectory: { meaning: 'Only sessions in this directory.', default: 'all' },
      limit: { meaning: 'Maximum number of sessions, newest first.', default: '50' },
    },
    returns: {
      sessions: 'All Claude Code sessions on this machine.',
      'sessions[].sessionId': 'Id of the session.',
      'sessions[].projectDirectory': 'Its directory.',
      'sessions[].displayText': 'Its title or first words.',
      'sessions[].timestamp': 'When something last happened in it.',
      'sessions[].isActive': 'Whether this server has a process for it.',
      'sessions[].activeStatus': 'Its status here, if it is active.',
      ...FAILURE,
    },
  },
};

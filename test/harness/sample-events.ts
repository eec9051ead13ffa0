import type { EventBody, EventType } from '../../src/schema/events.ts';
import { resultEvent, textEvent } from './agent-messages.ts';

/** An event of this type that contains this text. */
export function sampleEvent(type: EventType, text = 'some words'): EventBody {
  switch (type) {
    case 'output':
      return textEvent(text);
    case 'progress':
      return { kind: 'notice', name: 'informational', text };
    case 'permission_request': {
      const ask = { requestId: 'r1', toolName: 'Bash', input: { command: text }, toolUseId: 't1', onceOnly: false };
      return { kind: type, request: { id: 'r1', kind: 'permission', ask, createdAt: 0 } };
    }
    case 'permission_result':
      return {
        kind: type,
        requestId: 'r1',
        toolName: 'Bash',
        toolUseId: 't1',
        decision: 'deny',
        source: 'caller',
        message: text,
      };
    case 'result':
      return resultEvent({ text });
    case 'error':
      return { kind: type, message: text };
  }
}

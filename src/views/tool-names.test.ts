import { expect, test } from 'vitest';
import { EventLog } from '../engine/conversation/event-log.ts';
import type { EventBody } from '../schema/events.ts';
import { blocksOf, ToolNames } from './tool-names.ts';

function callEvent(toolUseId: string, toolName: string): EventBody {
  return { kind: 'message', role: 'assistant', blocks: [{ kind: 'tool_call', toolUseId, toolName, input: {} }] };
}

test('a result gets the tool name of its call, wherever the reader starts', () => {
  const log = new EventLog({ maxEvents: 100, maxBytes: 100_000 });
  for (const [id, name] of Object.entries({ a: 'Read', b: 'Bash', c: 'Edit' })) log.append(callEvent(id, name), 0);
  for (const first of [1, 2, 3, 4, log.nextId]) {
    const names = new ToolNames(log, first);
    for (const { body } of log.from(first).events)
      for (const block of blocksOf(body)) if (block.kind === 'tool_call') names.add(block);
    expect(['b', 'a', 'c', 'unknown', 'a'].map((id) => names.of(id))).toEqual([
      'Bash',
      'Read',
      'Edit',
      undefined,
      'Read',
    ]);
  }
});

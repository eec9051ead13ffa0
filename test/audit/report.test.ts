import { appendFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AuditEntry } from '../../src/audit/audit-log.ts';
import { linesFromEnd, formatAudit, readAudit, type AuditQuery } from '../../src/audit/report.ts';
import { runAudit } from '../../src/cli/audit/run-audit.ts';
import { SettingsError } from '../../src/config/bad-input.ts';
import { temporaryDirectory } from './audit-harness.ts';

function entry(what: string, more: Partial<AuditEntry> = {}): AuditEntry {
  return { time: '2026-01-02T03:04:05.000Z', kind: 'tool_call', who: 'caller', what, ...more };
}

function lines(...entries: AuditEntry[]): string {
  return entries.map((each) => `${JSON.stringify(each)}\n`).join('');
}

function logWith(text: string): string {
  const file = path.join(temporaryDirectory(), 'audit.jsonl');
  writeFileSync(file, text);
  return file;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('linesFromEnd', () => {
  it('yields the lines of any file in reverse', async () => {
    const file = logWith('');
    const anyText = fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant('é€'.repeat(40_000))), {
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(anyText, async (parts) => {
        const text = parts.join('\n');
        writeFileSync(file, text);
        const reversed = await collect(linesFromEnd(file));
        expect(reversed.reverse()).toEqual(text.split('\n'));
      }),
      { numRuns: 50 },
    );
  });

  it('does not buffer an overlong line', async () => {
    const file = logWith(`first\n${'x'.repeat(3_000_000)}\nlast`);
    expect(await collect(linesFromEnd(file))).toEqual(['last', undefined, 'first']);
  });
});

describe('readAudit', () => {
  it('includes rotated files, oldest first', async () => {
    const file = logWith(lines(entry('five')));
    writeFileSync(`${file}.1`, lines(entry('three'), entry('four')));
    writeFileSync(`${file}.2`, lines(entry('one'), entry('two')));
    writeFileSync(`${file}.4`, lines(entry('not connected')));
    const { entries } = await readAudit(file);
    expect(entries.map(({ what }) => what)).toEqual(['one', 'two', 'three', 'four', 'five']);
    expect((await readAudit(file, { last: 2 })).entries.map(({ what }) => what)).toEqual(['four', 'five']);
    expect((await readAudit(file, { last: 0 })).entries).toEqual([]);
  });

  it('filters by session id or prefix', async () => {
    const file = logWith(lines(entry('a', { session: 'abcdef' }), entry('b', { session: 'abxxxx' }), entry('c')));
    expect((await readAudit(file, { session: 'abc' })).entries.map(({ what }) => what)).toEqual(['a']);
    expect((await readAudit(file, { session: 'abxxxx', last: 5 })).entries.map(({ what }) => what)).toEqual(['b']);
  });

  it('filters by person, tool, decision and time', async () => {
    const at = (hour: number): string => new Date(Date.UTC(2026, 0, 2, hour)).toISOString();
    const decided = { kind: 'decision', who: 'human' } as const;
    const file = logWith(
      lines(
        entry('Bash', { ...decided, time: at(1), principal: 'token:t1', name: 'Anna', outcome: 'allow' }),
        entry('Bash', { ...decided, time: at(2), principal: 'token:t2', name: 'Ben', outcome: 'deny' }),
        entry('Edit', { ...decided, time: at(3), principal: 'token:t1', name: 'Anna', outcome: 'deny' }),
        entry('Bash', { kind: 'request', who: 'claude', time: at(4), name: 'Anna', outcome: 'deny' }),
      ),
    );
    const hours = async (query: AuditQuery): Promise<number[]> =>
      (await readAudit(file, query)).entries.map(({ time }) => new Date(time).getUTCHours());
    expect(await hours({ person: 'anna' })).toEqual([1, 3]);
    expect(await hours({ person: 'token:t2' })).toEqual([2]);
    expect(await hours({ tool: 'bash' })).toEqual([1, 2, 4]);
    expect(await hours({ decision: 'deny' })).toEqual([2, 3]);
    expect(await hours({ since: at(2), until: at(3) })).toEqual([2, 3]);
    expect(await hours({ person: 'Anna', tool: 'Edit', decision: 'deny' })).toEqual([3]);
  });

  it('counts unreadable lines', async () => {
    const file = logWith(
      `${lines(entry('a'))}{"time":"x"\n[]\n42\n\n{"time":1,"kind":"x","who":"y","what":"z"}\n${lines(entry('b'))}{"torn`,
    );
    const { entries, unreadableLines } = await readAudit(file);
    expect(entries.map(({ what }) => what)).toEqual(['a', 'b']);
    expect(unreadableLines).toBe(5);
  });

  it('reads only the end of a huge file', async () => {
    const file = logWith('');
    truncateSync(file, 5 * 1024 ** 3);
    appendFileSync(file, `\n${lines(entry('last but one'), entry('last'))}`);
    expect((await readAudit(file, { last: 2 })).entries.map(({ what }) => what)).toEqual(['last but one', 'last']);
  });
});

describe('formatAudit', () => {
  it('aligns columns in local time', () => {
    const time = new Date(2026, 0, 2, 3, 4, 5).toISOString();
    const text = formatAudit([
      entry('claude_code', { time, session: '0123456789', outcome: 'running' }),
      entry('Bash', { time, kind: 'decision', who: 'human', name: 'Anna', outcome: 'allow', cost: 0.5, dropped: 2 }),
    ]);
    expect(text.replaceAll(/ [+-]\d\d:\d\d /g, ' +00:00 ')).toBe(
      [
        'time                        session   who     by    kind       what         outcome                                      cost',
        '2026-01-02 03:04:05 +00:00  01234567  caller  -     tool_call  claude_code  running',
        '2026-01-02 03:04:05 +00:00  -         human   Anna  decision   Bash         allow (2 entries before this one were lost)  $0.5000',
        '',
      ].join('\n'),
    );
  });

  it('names who did it, never the owner of the session, and what it was about', () => {
    const anna = { principal: 'token:t1', name: 'Anna' };
    const names = [
      entry('Bash', { ...anna, kind: 'decision', who: 'human' }),
      entry('Bash', { ...anna, kind: 'decision', who: 'timeout' }),
      entry('Bash', { ...anna, kind: 'request', who: 'claude' }),
      entry('cancelled', { ...anna, kind: 'end', who: 'cancel' }),
      entry('claude_code', { ...anna }),
    ].map((one) => formatAudit([one]).includes('Anna'));
    expect(names).toEqual([true, false, false, false, true]);
    expect(formatAudit([{ ...entry('Bash'), target: 'npm test' }])).toContain('  Bash npm test');
  });

  it('does not call an unknown cost nothing', () => {
    const ended = (cost: number) =>
      formatAudit([entry('error', { kind: 'end', cost, details: { costUnknown: true } })]);
    expect(ended(0).trimEnd()).toMatch(/ unknown$/);
    expect(ended(0.5).trimEnd()).toMatch(/ \$0\.5000\+$/);
  });

  it('shows neither control characters nor overlong names', () => {
    const text = formatAudit([entry(`\u001b[2J\r\n\u202e${'x'.repeat(200)}`, { time: 'never' })]);
    expect(text.split('\n')).toHaveLength(3);
    for (const invisible of ['\u001b', '\r', '\u202e']) expect(text).not.toContain(invisible);
    expect(text).toContain('\\u001b[2J\\u000d\\u000a\\u202exxx');
    expect(text).toContain('x…');
  });
});

describe('runAudit', () => {
  async function run(rest: string[], file: string): Promise<{ code: number; text: string }> {
    let text = '';
    const code = await runAudit(rest, {
      path: file,
      openStore: () => Promise.resolve(undefined),
      write: (part) => (text += part),
      writeError: (part) => (text += part),
    });
    return { code, text };
  }

  it('shows the newest 50 entries', async () => {
    const file = logWith(lines(...Array.from({ length: 60 }, (_, index) => entry(`call ${index}.`))));
    const { code, text } = await run([], file);
    expect(code).toBe(0);
    expect(text.trimEnd().split('\n')).toHaveLength(51);
    expect(text).toContain('call 10.');
    expect(text).not.toContain('call 9.');
  });

  it('prints one session as JSON lines', async () => {
    const wanted = entry('b', { session: 's2', details: { chars: 5 } });
    const file = logWith(lines(entry('a', { session: 's1' }), wanted, entry('c', { session: 's1' })));
    expect(await run(['--session', 's2', '--json'], file)).toEqual({ code: 0, text: lines(wanted) });
    expect((await run(['--last=1', '--json'], file)).text).toContain('"what":"c"');
  });

  it('reports missing entries and bad arguments', async () => {
    const file = logWith('broken\n');
    expect(await run([], file)).toEqual({
      code: 0,
      text: `No entries found in ${file}.\nLines that could not be read: 1.\n`,
    });
    expect(await run([], `${file}.none`)).toEqual({ code: 0, text: `No entries found in ${file}.none.\n` });
    expect(await run([], 'off')).toMatchObject({ code: 1, text: expect.stringContaining('off') as string });
    expect(await run([], path.dirname(file))).toMatchObject({
      code: 1,
      text: expect.stringContaining('is not a regular file') as string,
    });
    for (const bad of [['--last', '0'], ['--last', 'x'], ['--last'], ['--nonsense'], ['word'], ['--json=1']]) {
      await expect(run(bad, file)).rejects.toThrow(SettingsError);
    }
  });
});

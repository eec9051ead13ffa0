import type { Options } from '@anthropic-ai/claude-agent-sdk';
import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  EXPOSED_OPTIONS,
  SDK_OPTIONS,
  SERVER_OPTIONS,
  whyNotOffered,
  type OptionClass,
} from '../../src/driver/options-table.ts';
import { sdkOptions } from '../../src/driver/sdk-options.ts';
import { ADVANCED_OPTION_NAMES, COMMON_OPTION_NAMES, type SessionOptions } from '../../src/schema/session-options.ts';

const table: [string, OptionClass][] = Object.entries(SDK_OPTIONS);

/** Selects Claude Code's own system prompt; without it the SDK would send an empty one. */
const own = { systemPrompt: { type: 'preset', preset: 'claude_code' } };

describe('the options table', () => {
  it('exposes what the schema describes, and nothing else', () => {
    const exposed = [...EXPOSED_OPTIONS, ...Object.keys(SERVER_OPTIONS)];
    expect(exposed.sort()).toEqual([...COMMON_OPTION_NAMES, ...ADVANCED_OPTION_NAMES].sort());
  });

  it('offers no option both at the top level and under advanced', () => {
    expect(COMMON_OPTION_NAMES.filter((name) => (ADVANCED_OPTION_NAMES as string[]).includes(name))).toEqual([]);
  });

  it.each(table.filter(([, { kind }]) => kind !== 'exposed'))('says why %s is not offered', (name) => {
    expect(whyNotOffered(name)).toMatch(/\w/);
  });

  it('says nothing about names that are offered or unknown', () => {
    for (const name of ['model', 'nonsense', 'toString', '__proto__']) expect(whyNotOffered(name)).toBeUndefined();
  });

  it('accepts the same values as the SDK', () => {
    expectTypeOf<NonNullable<SessionOptions['effort']>>().toEqualTypeOf<NonNullable<Options['effort']>>();
    expectTypeOf<NonNullable<SessionOptions['permissionMode']>>().toEqualTypeOf<
      NonNullable<Options['permissionMode']>
    >();
    expectTypeOf<NonNullable<SessionOptions['settingSources']>>().toEqualTypeOf<
      NonNullable<Options['settingSources']>
    >();
    expectTypeOf<NonNullable<SessionOptions['pluginDelivery']>>().toEqualTypeOf<
      NonNullable<Options['pluginDelivery']>
    >();
    expectTypeOf<NonNullable<SessionOptions['skills']>>().toEqualTypeOf<NonNullable<Options['skills']>>();
    expectTypeOf<NonNullable<SessionOptions['thinking']>['type']>().toEqualTypeOf<
      NonNullable<Options['thinking']>['type']
    >();
  });
});

describe('options for the SDK', () => {
  it('omit what was not given', () => {
    expect(sdkOptions({})).toEqual(own);
  });

  it('pass given values unchanged', () => {
    expect(sdkOptions({ model: 'm', maxTurns: 3, settingSources: [] })).toEqual({
      ...own,
      model: 'm',
      maxTurns: 3,
      settingSources: [],
    });
  });

  it('leave out the server’s own options', () => {
    expect(sdkOptions({ permissionRequestTimeoutMs: 5, sessionInitTimeoutMs: 5 })).toEqual(own);
  });

  it('never pre-approve questions', () => {
    expect(sdkOptions({ allowedTools: ['AskUserQuestion', 'Read'] }).allowedTools).toEqual(['Read']);
  });

  it('confirm bypassPermissions to the SDK', () => {
    expect(sdkOptions({ permissionMode: 'bypassPermissions' }).allowDangerouslySkipPermissions).toBe(true);
    expect(sdkOptions({ permissionMode: 'default' })).not.toHaveProperty('allowDangerouslySkipPermissions');
  });
});

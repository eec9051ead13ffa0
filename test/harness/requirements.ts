/** Requirements as data, and tests that say which of them they verify: once for each era, and toolset where it applies. */

import { test } from 'vitest';
import { ERAS, type Era } from './connect-client.ts';
import { startHarness } from './harness.ts';
import type { Harness, HarnessOptions } from './open-harness.ts';
import type { Toolset } from './toolsets.ts';

export interface Variants {
  /** By default both. */
  readonly eras?: readonly Era[];
  /** By default `compact`. */
  readonly toolsets?: readonly Toolset[];
  /** Tells tests of the same requirement apart. */
  readonly when?: string;
  /** Milliseconds. */
  readonly timeout?: number;
}

export interface Variant {
  readonly era: Era;
  readonly toolset: Toolset;
  /** `startHarness` with this era and toolset. */
  start(options?: Omit<HarnessOptions, 'era' | 'toolset'>): Promise<Harness>;
}

type Body = (variant: Variant) => Promise<void>;

export interface Requirements<Id extends string> {
  readonly texts: Readonly<Record<Id, string>>;
  /** Ids are written out where it is called: the coverage test reads them from the source. */
  verifies(ids: Id | readonly Id[], body: Body): void;
  verifies(ids: Id | readonly Id[], variants: Variants, body: Body): void;
}

export function defineRequirements<Id extends string>(texts: Readonly<Record<Id, string>>): Requirements<Id> {
  function verifies(ids: Id | readonly Id[], ...rest: [Body] | [Variants, Body]): void {
    const [variants, body] = rest.length === 1 ? [{}, rest[0]] : rest;
    const { eras = ERAS, toolsets = ['compact'], when, timeout = 120_000 } = variants;
    const name = titleOf(typeof ids === 'string' ? [ids] : ids, when);
    for (const toolset of toolsets) {
      for (const era of eras) {
        const start: Variant['start'] = (options) => startHarness({ ...options, era, toolset });
        test(`${name} [${era}, ${toolset}]`, { timeout }, () => body({ era, toolset, start }));
      }
    }
  }

  function titleOf(ids: readonly Id[], when: string | undefined): string {
    const title = ids.map((id) => `${id}: ${texts[id]}`).join(' + ');
    return when === undefined ? title : `${title}, ${when}`;
  }

  return { texts, verifies };
}

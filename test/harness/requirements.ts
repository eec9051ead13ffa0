/** Requirements as data, and tests that name the ones they verify, in each toolset and the eras that matter. */

import { afterAll, test } from 'vitest';
import { ERAS, type Era } from './connect-client.ts';
import { CLEAN_UP_TIMEOUT_MS, closeShared, sharedHarness, startHarness, type SharedOptions } from './harness.ts';
import type { Harness, HarnessOptions } from './open-harness.ts';
import { TOOLSETS, type Toolset } from './toolsets.ts';

export interface Requirement {
  readonly text: string;
  /** Where it applies. */
  readonly toolsets: readonly Toolset[];
  /** The engine does it whatever the toolset, so that a test in one toolset (by default the first) is enough. */
  readonly isEngine?: boolean;
}

type Texts<Id extends string> = Readonly<Record<Id, string>>;

export interface Variants {
  /** By default every toolset that all ids apply to. Must be a literal: the coverage test reads it from the source. */
  readonly toolsets?: readonly Toolset[];
  /** By default one per toolset; both if the requirement depends on the protocol and there is only one toolset. */
  readonly eras?: readonly Era[];
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
  /**
   * The same, but all tests of the file with these options share one server. For tests that are affected
   * neither by the sessions of the others nor by what they left in the project.
   */
  share(options?: Omit<SharedOptions, 'era' | 'toolset'>): Promise<Harness>;
}

/** A different one for each, so that a test in both toolsets also covers both eras. */
const ERA_OF: Readonly<Record<Toolset, Era>> = { compact: 'modern', explicit: 'legacy' };

const ENGINE_TOOLSET: Toolset = 'compact';

type Body = (variant: Variant) => Promise<void>;

export interface Requirements<Id extends string> {
  readonly requirements: Readonly<Record<Id, Requirement>>;
  /** The ids must be literals: the coverage test reads them from the source. */
  verifies(ids: Id | readonly Id[], body: Body): void;
  verifies(ids: Id | readonly Id[], variants: Variants, body: Body): void;
}

/** Requirements of both toolsets, and those of only one because the other lacks the feature. */
export function defineRequirements<Both extends string, Compact extends string, Explicit extends string>(texts: {
  readonly both: Texts<Both>;
  readonly compact: Texts<Compact>;
  readonly explicit: Texts<Explicit>;
  /** Those that hold in both because the engine, not a tool, implements them: verified in either. */
  readonly engine: readonly NoInfer<Both>[];
  /** Those that depend on the client's protocol: listing, errors, progress, cancelled calls. */
  readonly protocol: readonly NoInfer<Both | Compact | Explicit>[];
}): Requirements<Both | Compact | Explicit> {
  type Id = Both | Compact | Explicit;
  const requirements = {
    ...requirementsOf(texts.both, TOOLSETS),
    ...requirementsOf(texts.compact, ['compact']),
    ...requirementsOf(texts.explicit, ['explicit']),
    ...Object.fromEntries(texts.engine.map((id) => [id, { text: texts.both[id], toolsets: TOOLSETS, isEngine: true }])),
  } as Record<Id, Requirement>;

  function verifies(given: Id | readonly Id[], ...rest: [Body] | [Variants, Body]): void {
    const [variants, body] = rest.length === 1 ? [{}, rest[0]] : rest;
    const ids = typeof given === 'string' ? [given] : given;
    const applicable = sharedToolsets(requirements, ids);
    const { toolsets = defaultToolsets(requirements, ids), when, timeout = 120_000 } = variants;
    // Two toolsets cover both eras between them, since era and toolset do not affect each other.
    const inEveryEra = toolsets.length === 1 && ids.some((id) => texts.protocol.includes(id));
    if (toolsets.length === 0 || toolsets.some((toolset) => !applicable.includes(toolset))) {
      throw new Error(`${ids.join(' + ')} together apply to ${applicable.join(' and ') || 'no toolset'}`);
    }
    const title = ids.map((id) => `${id}: ${requirements[id].text}`).join(' + ');
    const name = when === undefined ? title : `${title}, ${when}`;
    for (const toolset of toolsets) {
      for (const era of variants.eras ?? (inEveryEra ? ERAS : [ERA_OF[toolset]])) {
        const start: Variant['start'] = (options) => startHarness({ ...options, era, toolset });
        const share: Variant['share'] = (options) => sharedHarness({ ...options, era, toolset });
        test(`${name} [${era}, ${toolset}]`, { timeout }, () => body({ era, toolset, start, share }));
      }
    }
    afterAll(closeShared, CLEAN_UP_TIMEOUT_MS);
  }

  return { requirements, verifies };
}

/** The toolsets in which a test of all these runs by default. */
export function defaultToolsets(
  requirements: Readonly<Record<string, Requirement>>,
  ids: readonly string[],
): readonly Toolset[] {
  const possible = sharedToolsets(requirements, ids);
  const isEngine = ids.some((id) => requirements[id]?.isEngine === true);
  return isEngine && possible.includes(ENGINE_TOOLSET) ? [ENGINE_TOOLSET] : possible;
}

function sharedToolsets(
  requirements: Readonly<Record<string, Requirement>>,
  ids: readonly string[],
): readonly Toolset[] {
  return TOOLSETS.filter((toolset) => ids.every((id) => requirements[id]?.toolsets.includes(toolset) ?? false));
}

function requirementsOf(texts: Texts<string>, toolsets: readonly Toolset[]): Record<string, Requirement> {
  return Object.fromEntries(Object.entries(texts).map(([id, text]) => [id, { text, toolsets }]));
}

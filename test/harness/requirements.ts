/** Requirements as data, and tests that say which of them they verify: in each toolset, and in the eras that matter. */

import { afterAll, test } from 'vitest';
import { ERAS, type Era } from './connect-client.ts';
import { CLEAN_UP_TIMEOUT_MS, closeShared, sharedHarness, startHarness, type SharedOptions } from './harness.ts';
import type { Harness, HarnessOptions } from './open-harness.ts';
import { TOOLSETS, type Toolset } from './toolsets.ts';

export interface Requirement {
  readonly text: string;
  /** Where it applies. */
  readonly toolsets: readonly Toolset[];
  /** What the engine does whichever tools are offered: one toolset is enough, and by default it is the first. */
  readonly isEngine?: boolean;
}

type Texts<Id extends string> = Readonly<Record<Id, string>>;

export interface Variants {
  /** By default every toolset that all the ids apply to. Written out: the coverage test reads it from the source. */
  readonly toolsets?: readonly Toolset[];
  /** By default one for each toolset; both for a requirement that the protocol can change and one toolset has. */
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
   * The same, but one server for all tests of the file that ask for it with these options. For tests that can tell
   * neither the sessions of the others nor what they left in the project.
   */
  share(options?: Omit<SharedOptions, 'era' | 'toolset'>): Promise<Harness>;
}

/** A different one for each, so that a test in both toolsets is one in both eras too. */
const ERA_OF: Readonly<Record<Toolset, Era>> = { compact: 'modern', explicit: 'legacy' };

const ENGINE_SHOWN_IN: Toolset = 'compact';

type Body = (variant: Variant) => Promise<void>;

export interface Requirements<Id extends string> {
  readonly requirements: Readonly<Record<Id, Requirement>>;
  /** Ids are written out where it is called: the coverage test reads them from the source. */
  verifies(ids: Id | readonly Id[], body: Body): void;
  verifies(ids: Id | readonly Id[], variants: Variants, body: Body): void;
}

/** What holds in both toolsets, and what is only in one because the other has no such thing. */
export function defineRequirements<Both extends string, Compact extends string, Explicit extends string>(texts: {
  readonly both: Texts<Both>;
  readonly compact: Texts<Compact>;
  readonly explicit: Texts<Explicit>;
  /** What holds in both because the engine does it, and no tool could change: shown in either of them. */
  readonly engine: readonly NoInfer<Both>[];
  /** What depends on how a client speaks: listing, errors, progress, cancelled calls. All else is the engine's. */
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
    // Two toolsets show both eras between them: how a client speaks and what the tools say do not change each other.
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

/** Where a test of all these runs if it does not say. */
export function defaultToolsets(
  requirements: Readonly<Record<string, Requirement>>,
  ids: readonly string[],
): readonly Toolset[] {
  const possible = sharedToolsets(requirements, ids);
  const isEngine = ids.some((id) => requirements[id]?.isEngine === true);
  return isEngine && possible.includes(ENGINE_SHOWN_IN) ? [ENGINE_SHOWN_IN] : possible;
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

/** What happened in sessions over `/api/v1`, as pages and as a stream: see `api.ts`. */

import { z } from 'zod';
import { APPLY_MODES, DIFF_SUBJECTS, FILE_STATUSES } from './enums.ts';
import { EventBody, EventType } from './events.ts';
import { time, count, limit, flag, apiSession, apiRequest } from './api.ts';

// ── what happened in a session ─────────────────────────────────────────────────────────────────────────────────────────

export const apiEvent = z.object({
  /** Rises by one within a session, from 1. */
  id: z.int().positive(),
  type: EventType,
  timestamp: time,
  data: EventBody,
});
export type ApiEvent = z.infer<typeof apiEvent>;

export const eventsQuery = z.strictObject({
  after: z.coerce.number().int().min(0).default(0),
  limit: limit(1000, 200),
});
export const eventsPage = z.object({
  events: z.array(apiEvent),
  /** The newest there is; there is more to read while it is above the last one here. */
  lastId: count,
  /** Events up to this id are gone, except some that are kept longer. */
  droppedThrough: count,
});
export type EventsPage = z.infer<typeof eventsPage>;

/** What a browser shows as a picture, and nothing that could be more than that. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
/** `GET …/events/{event}/images`: the images that came with the results of tools in one event. */
export const imagesAnswer = z.object({
  images: z.array(
    z.object({ toolUseID: z.string(), mediaType: z.enum(IMAGE_TYPES), /** In base 64. */ data: z.string() }),
  ),
});
export type ImagesAnswer = z.infer<typeof imagesAnswer>;

export const diffQuery = z.strictObject({
  /** `applied`: what the last apply changed. */
  of: z.enum(DIFF_SUBJECTS).default('open'),
  offset: z.coerce.number().int().min(0).default(0),
  maxBytes: limit(1_000_000, 200_000),
});
export const diffAnswer = z.object({
  filesChanged: count,
  insertions: count,
  deletions: count,
  /** On the first page. */
  files: z
    .array(
      z.looseObject({
        path: z.string(),
        insertions: count,
        deletions: count,
        status: z.enum(FILE_STATUSES),
        isBinary: z.boolean().optional(),
      }),
    )
    .optional(),
  /** Unified. */
  diff: z.string(),
  totalBytes: count,
  nextOffset: count.optional(),
  /** The last work that was applied. */
  applied: z
    .object({
      at: time,
      mode: z.enum(APPLY_MODES),
      commit: z.string().optional(),
      branch: z.string().optional(),
      checkout: z.string().optional(),
      by: z.string().optional(),
    })
    .optional(),
});
export type DiffAnswer = z.infer<typeof diffAnswer>;

// ── the stream ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export const streamQuery = z.strictObject({
  /** Only what concerns this session. */
  session: z.string().max(200).optional(),
  /** `false` leaves out what happens within sessions. */
  events: flag.default(true),
  /** Of what happens within sessions, only what happens in this one. */
  eventsOf: z.string().max(200).optional(),
  /** The id to resume from, for clients that cannot set `Last-Event-ID`. */
  after: z.coerce.number().int().min(0).optional(),
});

/**
 * `GET /events`: server-sent events by name. `id` is the position to resume from. A changed row is sent in its current
 * state, so a reader that was away gets each once.
 */
export const STREAM_MESSAGES = {
  session: apiSession,
  /** Open or settled. */
  request: apiRequest,
  event: apiEvent.extend({ sessionId: z.string() }),
  /**
   * What Claude is writing, a few times a second, while the stream has the events of one session: `text` continues what
   * was sent before at this position. It has no id: the event of the finished message replaces it.
   */
  writing: z.object({ sessionId: z.string(), at: count, text: z.string(), workedMs: count, quietMs: count }),
  /** A session that was idle for too long was removed, with everything in it. */
  removed: z.object({ sessionId: z.string() }),
  /** It cannot resume from there: what is shown is stale and must be reloaded. */
  reset: z.object({ reason: z.string(), position: count }),
  /** The stream has caught up; what follows happens now. `store` changes when the hub has a new store. */
  live: z.object({ position: count, store: z.string() }),
} as const;
export type StreamMessages = { [Name in keyof typeof STREAM_MESSAGES]: z.infer<(typeof STREAM_MESSAGES)[Name]> };

/*
 * What an operator may choose between. Apart from the other words and without zod: the first answer of a server waits for
 * its settings to be read, and for every byte that they load.
 */

export const TOOLSET_NAMES = ['compact', 'explicit'] as const;

export const APPROVAL_MODES = ['auto', 'caller', 'human'] as const;

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

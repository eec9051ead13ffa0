import type { Settings } from '../config/load-settings.ts';

/** A result as it is sent: it is written out at once, never read here. */
type ResultText = string;

/** What the server answers to the requests that open a connection, for each era of the protocol. */
export interface OpeningAnswers {
  readonly legacy: {
    readonly versions: readonly string[];
    /** Without `protocolVersion`, which is the one that was asked for. */
    readonly initialize: ResultText;
    readonly listTools: ResultText;
  };
  readonly modern: {
    readonly versions: readonly string[];
    readonly discover: ResultText;
    readonly listTools: ResultText;
  };
}

/** The build fills this in with what the real server answers; without it nothing is answered early. */
export const OPENING_ANSWERS: Readonly<Partial<Record<Settings['toolset'], OpeningAnswers>>> = {};

/** What a tool answered. Tests assert on it field by field, so it is not parsed first. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any;

/** Values as JSON has them. */

export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is a JSON object, which neither null nor an array is. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields of an object; none of anything else. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/** Without the fields that are undefined: an omitted option is not passed on. */
export function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

/** Roughly the JSON size of a value, without building the JSON: the log measures every event. */
export function sizeOf(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return value.length + 2;
    case 'number':
    case 'boolean':
      return 8;
    case 'object':
      return value === null ? 4 : sizeOfObject(value);
    default:
      return 0;
  }
}

function sizeOfObject(value: object): number {
  let size = 2;
  if (Array.isArray(value)) {
    for (const item of value) size += sizeOf(item) + 1;
    return size;
  }
  // Much faster than Object.entries; plain data has no other names.
  for (const name in value) size += name.length + 4 + sizeOf((value as Record<string, unknown>)[name]);
  return size;
}

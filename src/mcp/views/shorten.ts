export function byteLength(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

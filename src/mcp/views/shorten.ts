import { cutAt } from '../../engine/tool-summary.ts';

/** The value with every long text in it cut; tells whether anything was. */
export function shortenTexts(value: unknown, maxChars: number): { value: unknown; cut: boolean } {
  if (typeof value === 'string') {
    if (value.length <= maxChars) return { value, cut: false };
    return { value: `${cutAt(value, maxChars)}… (${String(value.length)} characters)`, cut: true };
  }
  if (typeof value !== 'object' || value === null) return { value, cut: false };
  let cut = false;
  const short = (item: unknown): unknown => {
    const shortened = shortenTexts(item, maxChars);
    cut ||= shortened.cut;
    return shortened.value;
  };
  const copy = Array.isArray(value)
    ? value.map(short)
    : Object.fromEntries(Object.entries(value).map(([name, item]) => [name, short(item)]));
  return cut ? { value: copy, cut } : { value, cut };
}

export function byteLength(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

/** Generated parts of hand-written pages: between `<!-- gen:NAME -->` and `<!-- /gen -->`. */

const PART = /(<!-- gen:([\w-]+) -->\n)[^]*?(<!-- \/gen -->)/g;

export function fillGeneratedParts(page: string, parts: Readonly<Record<string, () => string>>, file: string): string {
  const opened = page.split('<!-- gen:').length - 1;
  const closed = [...page.matchAll(PART)].length;
  if (opened !== closed) throw new Error(`${file}: a <!-- gen:NAME --> without its <!-- /gen -->`);
  return page.replaceAll(PART, (_whole, start: string, name: string, end: string) => {
    const make = parts[name];
    if (!make)
      throw new Error(`${file}: no generated part is called ${name}; there are ${Object.keys(parts).join(', ')}`);
    return `${start}${make()}${end}`;
  });
}

import { toJson } from './row-facts.ts';

interface Entry<Row> {
  /** The position of the last change. */
  readonly seq: number;
  /** The position of the first. */
  readonly first: number;
  readonly row: Row;
}

/** A table in memory; rows are copied in and out. */
export class Rows<Row> extends Map<string, Entry<Row>> {
  /** The final state; nothing that can fail is left for later. */
  prepare(key: string, row: Row, seq: number): () => void {
    const copy = JSON.parse(toJson(row)) as Row;
    return () => void this.set(key, { seq, first: this.get(key)?.first ?? seq, row: copy });
  }

  row(key: string): Row | undefined {
    return structuredClone(this.get(key)?.row);
  }

  /** In the order in which they were first stored. */
  select(where: (row: Row) => boolean): Row[] {
    return [...this.values()]
      .filter(({ row }) => where(row))
      .sort((a, b) => a.first - b.first)
      .map(({ row }) => structuredClone(row));
  }

  pick(keys: ReadonlySet<string>): Map<string, Row> {
    return new Map(
      [...keys].flatMap((key) => {
        const row = this.row(key);
        return row === undefined ? [] : [[key, row] as const];
      }),
    );
  }
}

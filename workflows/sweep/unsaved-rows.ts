/** Rows that are still to be recorded, the oldest first, and how many records there are. */
export class UnsavedRows<Row> {
  /** Records written so far. */
  chunks: number;
  readonly #rows: Row[] = [];

  constructor(chunks: number) {
    this.chunks = chunks;
  }

  get count(): number {
    return this.#rows.length;
  }

  add(row: Row): void {
    this.#rows.push(row);
  }

  /** The oldest, as many as fit into so many bytes, and one at least. */
  first(bytes: number): readonly Row[] {
    let left = bytes;
    const fits = this.#rows.findIndex((row) => {
      left -= new TextEncoder().encode(JSON.stringify(row)).length + 1;
      return left < 0;
    });
    return this.#rows.slice(0, fits < 0 ? undefined : Math.max(1, fits));
  }

  /** So many of the oldest are a record now. */
  saved(rows: number): void {
    this.#rows.splice(0, rows);
    this.chunks += 1;
  }
}

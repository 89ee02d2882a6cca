import { widthOf } from './width.ts';

/** One line of a screen: a text per column. The second column of a wide character is empty. */
export interface Line {
  readonly cells: string[];
  /** Whether the text wraps to the next line. */
  continues: boolean;
}

export interface Size {
  readonly rows: number;
  readonly columns: number;
}

export interface Position {
  row: number;
  column: number;
}

/** Creates a blank grid. `onScroll` gets each line that scrolls out at the top of the screen, as it is at that time. */
export const createGrid = (size: Size, onScroll: (line: Line) => void): Grid => new CellGrid(size, onScroll);

export type Grid = CellGrid;

/** The characters of a screen, with a cursor and a region that scrolls. Positions count from 0. */
class CellGrid {
  readonly size: Size;
  readonly cursor: Position = { row: 0, column: 0 };
  readonly #onScroll: (line: Line) => void;
  #lines: Line[];
  #top = 0;
  #bottom: number;
  /** Whether the last column was just written, so that the next character wraps to the next line. */
  #full = false;
  #scrolled = 0;
  #touched = Number.POSITIVE_INFINITY;

  constructor(size: Size, onScroll: (line: Line) => void) {
    this.size = size;
    this.#onScroll = onScroll;
    this.#bottom = size.rows - 1;
    this.#lines = Array.from({ length: size.rows }, () => this.#blank());
  }

  get lines(): readonly Line[] {
    return this.#lines;
  }

  /** The number of lines that have scrolled out at the top. */
  get scrolled(): number {
    return this.#scrolled;
  }

  /** Returns the first line that was written since the last call, counted from the first of all lines; infinite if none was. */
  takeTouched(): number {
    const touched = this.#touched;
    this.#touched = Number.POSITIVE_INFINITY;
    return touched;
  }

  write(character: string): void {
    const width = widthOf(character);
    if (width === 0) this.#join(character);
    else this.#put([character], width);
  }

  /** Writes characters of one column each. */
  writeNarrow(text: string): void {
    const { columns } = this.size;
    for (let at = 0; at < text.length; ) {
      const room = this.#full ? columns : columns - this.cursor.column;
      this.#put(text.slice(at, at + room), 1);
      at += room;
    }
  }

  /** Writes characters that fit into one line: the cursor's, or the next one if there is no room in it. */
  #put(characters: ArrayLike<string>, width: 1 | 2): void {
    const { columns } = this.size;
    const taken = characters.length * width;
    if (this.#full || this.cursor.column + taken > columns) {
      this.#line(this.cursor.row).continues = true;
      this.cursor.column = 0;
      this.feed();
    }
    const { row, column } = this.cursor;
    const { cells } = this.#touch(row);
    // A wide character disappears as a whole when one of its columns is overwritten.
    if (cells[column] === '') cells[column - 1] = ' ';
    if (cells[column + taken] === '') cells[column + taken] = ' ';
    for (let at = 0; at < characters.length; at += 1) {
      cells[column + at * width] = characters[at] ?? '';
      if (width === 2) cells[column + at * width + 1] = '';
    }
    this.#full = column + taken >= columns;
    this.cursor.column = Math.min(column + taken, columns - 1);
  }

  /** Moves the cursor down; at the end of the region, the region scrolls. */
  feed(): void {
    this.#full = false;
    if (this.cursor.row === this.#bottom) this.scrollUp(1);
    else this.cursor.row = Math.min(this.cursor.row + 1, this.size.rows - 1);
  }

  /** Moves the cursor up; at the start of the region, the region scrolls back. */
  reverseFeed(): void {
    this.#full = false;
    if (this.cursor.row === this.#top) this.insertLines(1, this.#top);
    else this.cursor.row = Math.max(this.cursor.row - 1, 0);
  }

  move({ row = this.cursor.row, column = this.cursor.column }: Partial<Position>): void {
    this.#full = false;
    this.cursor.row = clamp(row, this.size.rows);
    this.cursor.column = clamp(column, this.size.columns);
  }

  setRegion(top: number, bottom: number): void {
    const valid = top >= 0 && top < bottom && bottom < this.size.rows;
    this.#top = valid ? top : 0;
    this.#bottom = valid ? bottom : this.size.rows - 1;
    this.move({ row: 0, column: 0 });
  }

  /** Moves the lines of the region up. Those that leave at the top of the screen have scrolled out. */
  scrollUp(count: number): void {
    if (this.#top > 0) {
      this.deleteLines(count, this.#top);
      return;
    }
    for (let times = Math.min(count, this.size.rows); times > 0; times -= 1) {
      const line = this.#line(0);
      this.#onScroll(line);
      this.#scrolled += 1;
      // The line is reused, because a new one for each line of output would make much garbage.
      line.cells.fill(' ');
      line.continues = false;
      this.#lines.splice(0, 1);
      this.#lines.splice(this.#bottom, 0, line);
    }
  }

  /** Removes lines of the region at a row; those below move up. */
  deleteLines(count: number, row: number): void {
    if (row < this.#top || row > this.#bottom) return;
    const gone = Math.min(count, this.#bottom - row + 1);
    this.#lines.splice(row, gone);
    this.#lines.splice(this.#bottom - gone + 1, 0, ...Array.from({ length: gone }, () => this.#blank()));
    this.#touch(row);
  }

  /** Inserts blank lines into the region at a row; those below move down. */
  insertLines(count: number, row = this.#top): void {
    if (row < this.#top || row > this.#bottom) return;
    const added = Math.min(count, this.#bottom - row + 1);
    this.#lines.splice(this.#bottom - added + 1, added);
    this.#lines.splice(row, 0, ...Array.from({ length: added }, () => this.#blank()));
    this.#touch(row);
  }

  /** Blanks cells of a row; `to` is not included. */
  erase(row: number, from: number, to: number): void {
    const line = this.#touch(row);
    line.cells.fill(' ', Math.max(from, 0), Math.max(to, 0));
    line.continues = false;
  }

  eraseRows(from: number, to: number): void {
    for (let row = Math.max(from, 0); row < Math.min(to, this.size.rows); row += 1)
      this.erase(row, 0, this.size.columns);
  }

  insertCells(count: number): void {
    this.#shift((cells, column, many) => {
      cells.splice(column, 0, ...blanks(many));
      cells.length = this.size.columns;
    }, count);
  }

  deleteCells(count: number): void {
    this.#shift((cells, column, many) => {
      cells.splice(column, many);
      cells.push(...blanks(many));
    }, count);
  }

  #shift(change: (cells: string[], column: number, count: number) => void, count: number): void {
    const { row, column } = this.cursor;
    change(this.#touch(row).cells, column, Math.min(count, this.size.columns - column));
  }

  #join(mark: string): void {
    const { row, column } = this.cursor;
    const { cells } = this.#touch(row);
    let at = this.#full ? column : column - 1;
    if (cells[at] === '') at -= 1;
    // The number of marks is limited, because otherwise one cell could become as large as the output.
    if (at >= 0 && (cells[at] ?? '').length < 16) cells[at] += mark;
  }

  #touch(row: number): Line {
    this.#touched = Math.min(this.#touched, this.#scrolled + row);
    return this.#line(row);
  }

  #line(row: number): Line {
    const line = this.#lines[row];
    if (line === undefined) throw new RangeError(`expected a row below ${this.size.rows}, got ${row}`);
    return line;
  }

  #blank(): Line {
    return { cells: blanks(this.size.columns), continues: false };
  }
}

const blanks = (count: number): string[] => Array.from({ length: count }, () => ' ');
const clamp = (value: number, size: number): number => Math.min(Math.max(value, 0), size - 1);

/** The text of a line, without the blanks that fill it. */
export const textOfLine = ({ cells, continues }: Line): string =>
  continues ? cells.join('') : cells.join('').trimEnd();

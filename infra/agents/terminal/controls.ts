import type { Grid } from './grid.ts';

/** The numbers of a control sequence. A missing number or a 0 is read as 1 in `first` and `second`, and as 0 in `what`. */
export interface Numbers {
  readonly first: number;
  readonly second: number;
  readonly what: number;
  /** The second number; null if it is missing. */
  readonly last: number | null;
}

const most = 10_000;

export function readNumbers(parameters: string): Numbers {
  const [one = 0, two = 0] = parameters.split(/[;:]/).map((part) => Math.min(Number.parseInt(part, 10) || 0, most));
  return { first: one || 1, second: two || 1, what: one, last: two || null };
}

/** The effects of the control sequences on a grid, by their last character. */
export const controls: ReadonlyMap<string, (grid: Grid, numbers: Numbers) => void> = new Map(
  Object.entries({
    A: (grid: Grid, { first }: Numbers) => grid.move({ row: grid.cursor.row - first }),
    B: (grid, { first }) => grid.move({ row: grid.cursor.row + first }),
    e: (grid, { first }) => grid.move({ row: grid.cursor.row + first }),
    C: (grid, { first }) => grid.move({ column: grid.cursor.column + first }),
    a: (grid, { first }) => grid.move({ column: grid.cursor.column + first }),
    D: (grid, { first }) => grid.move({ column: grid.cursor.column - first }),
    E: (grid, { first }) => grid.move({ row: grid.cursor.row + first, column: 0 }),
    F: (grid, { first }) => grid.move({ row: grid.cursor.row - first, column: 0 }),
    G: (grid, { first }) => grid.move({ column: first - 1 }),
    '`': (grid, { first }) => grid.move({ column: first - 1 }),
    d: (grid, { first }) => grid.move({ row: first - 1 }),
    H: (grid, { first, second }) => grid.move({ row: first - 1, column: second - 1 }),
    f: (grid, { first, second }) => grid.move({ row: first - 1, column: second - 1 }),
    J: (grid, { what }) => eraseDisplay(grid, what),
    K: (grid, { what }) => eraseLine(grid, what),
    L: (grid, { first }) => grid.insertLines(first, grid.cursor.row),
    M: (grid, { first }) => grid.deleteLines(first, grid.cursor.row),
    P: (grid, { first }) => grid.deleteCells(first),
    '@': (grid, { first }) => grid.insertCells(first),
    X: (grid, { first }) => grid.erase(grid.cursor.row, grid.cursor.column, grid.cursor.column + first),
    S: (grid, { first }) => grid.scrollUp(first),
    T: (grid, { first }) => grid.insertLines(first),
    r: (grid, { first, last }) => grid.setRegion(first - 1, (last ?? grid.size.rows) - 1),
  } satisfies Record<string, (grid: Grid, numbers: Numbers) => void>),
);

function eraseDisplay(grid: Grid, what: number): void {
  const { row, column } = grid.cursor;
  const { rows, columns } = grid.size;
  if (what === 0) {
    grid.erase(row, column, columns);
    grid.eraseRows(row + 1, rows);
  } else if (what === 1) {
    grid.eraseRows(0, row);
    grid.erase(row, 0, column + 1);
  } else grid.eraseRows(0, rows);
}

function eraseLine(grid: Grid, what: number): void {
  const { row, column } = grid.cursor;
  grid.erase(row, what === 0 ? column : 0, what === 1 ? column + 1 : grid.size.columns);
}

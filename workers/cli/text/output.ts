import { asCalled } from '../../../infra/process/called-as.ts';

/**
 * Prints a result to stdout. Progress belongs on stderr, by `note` and `live`, so that a pipe receives results only.
 */
export function print(text: string): void {
  clearLive();
  process.stdout.write(`${text}\n`);
  redrawLive();
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

/** Prints a line about progress or a problem to stderr, with commands as the user called temper. */
export function note(text: string): void {
  clearLive();
  process.stderr.write(`${asCalled(text)}\n`);
  loggedAt = Date.now();
  redrawLive();
}

let liveText = '';
/**
 * Interval at which a log, instead of a terminal, receives the live line. Most steps take less, so that it stays short.
 */
const logEveryMs = 30_000;
let loggedAt = Date.now();

/** Replaces the last line of the terminal. If stderr is not a terminal, prints the line from time to time instead. */
export function live(text: string): void {
  if (!process.stderr.isTTY) {
    if (text !== '' && Date.now() - loggedAt >= logEveryMs) note(text);
    return;
  }
  clearLive();
  liveText = text;
  redrawLive();
}

function clearLive(): void {
  if (liveText !== '') process.stderr.write('\r\u001b[2K');
}

function redrawLive(): void {
  const width = process.stderr.columns || 80; // a pseudo-terminal may have no size
  if (liveText !== '') process.stderr.write(liveText.slice(0, width - 1));
}

/** The largest number of rows of a list on a terminal; `--json` prints all of them. */
export const mostRows = 200;

/** Formats a table: columns are as wide as their widest cell, and numbers are aligned to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? cell.length;
        return /^-?\d[\d.,]*$/.test(cell) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/** The columns of a page, where stdout is no terminal. */
const pageWidth = 100;
const narrowest = 60;

/** A thing of a list, and texts about it. */
interface Listed {
  readonly what: string;
  readonly about: readonly string[];
}

/** Formats counted things one below the other, each with lines about it, as wide as the terminal. */
export function countedList(
  title: string,
  items: readonly (Listed & { readonly count: number })[],
  columns = process.stdout.columns ?? pageWidth,
): string {
  const margin = Math.max(...items.map(({ count }) => String(count).length)) + 4;
  const lines = items.flatMap(({ count, ...item }) => {
    const [first = '', ...rest] = linesOf(item, Math.max(narrowest, columns) - margin);
    return [`${String(count).padStart(margin - 2)}  ${first}`, ...rest.map((line) => ' '.repeat(margin) + line)];
  });
  return [title, ...lines].join('\n');
}

/** Formats things one below the other, each with lines about it, as wide as the terminal. */
export const describedList = (
  title: string,
  items: readonly Listed[],
  columns = process.stdout.columns ?? pageWidth,
): string => {
  const width = Math.max(narrowest, columns) - 2;
  return [title, ...items.flatMap((item) => linesOf(item, width)).map((line) => `  ${line}`)].join('\n');
};

function linesOf({ what, about }: Listed, width: number): readonly string[] {
  const more = about.flatMap((text) => wrapped(text, width - 2)).map((line) => `  ${line}`);
  return [...wrapped(what, width), ...more];
}

/** Splits a text into lines at its spaces. A word that is longer than a line has one of its own. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Formats a number of things: `1 rollout`, `2 rollouts`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`;

/** Formats a size: `812 B`, `64.0 MB`, `1.2 GB`. */
export function bytes(value: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** Formats a duration: `3.20 s`, `75.0 s`, `12 min 5 s`. */
export function seconds(value: number): string {
  if (value < 10) return `${value.toFixed(2)} s`;
  if (value < 120) return `${value.toFixed(1)} s`;
  // Rounded before it is divided: 179.7 s are no `2 min 60 s`.
  const whole = Math.round(value);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** Formats the time since a moment: `20 s ago`, `3 h ago`. A moment that another clock puts into the future is now. */
export function ago(isoTime: string): string {
  const past = Math.max(0, (Date.now() - Date.parse(isoTime)) / 1000);
  if (past < 90) return `${Math.round(past)} s ago`;
  if (past < 5400) return `${Math.round(past / 60)} min ago`;
  return past < 129_600 ? `${Math.round(past / 3600)} h ago` : `${Math.round(past / 86_400)} days ago`;
}

/** Results go to stdout, what happens meanwhile to stderr: a pipe gets only the former. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

export function note(text: string): void {
  clearLive();
  process.stderr.write(`${text}\n`);
  loggedAt = Date.now();
  redrawLive();
}

let liveText = '';
/** A log gets what a terminal's last line says this often, if at all: steps are quicker as a rule. */
const logEveryMs = 30_000;
let loggedAt = Date.now();

/** The last line of a terminal, written anew at each call; now and then a line of its own where stderr is none. */
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
  const width = process.stderr.columns ?? 80;
  if (liveText !== '') process.stderr.write(liveText.slice(0, width - 1));
}

/** Columns as wide as their widest cell; numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? cell.length;
        return /^-?[\d.]+$/.test(cell) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

export function seconds(value: number): string {
  if (value < 10) return `${value.toFixed(2)} s`;
  return value < 120 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export function ago(isoTime: string): string {
  const past = (Date.now() - Date.parse(isoTime)) / 1000;
  if (past < 90) return `${Math.round(past)} s ago`;
  if (past < 5400) return `${Math.round(past / 60)} min ago`;
  return past < 129_600 ? `${Math.round(past / 3600)} h ago` : `${Math.round(past / 86_400)} days ago`;
}

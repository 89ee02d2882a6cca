import { stripVTControlCharacters } from 'node:util';

/** No runner reports a test in a line longer than this; some tests print much longer ones. */
const longestLine = 64 * 1024;
/** What every escape sequence begins with, in its long and its short form. */
const escapes: readonly string[] = ['\u001b', '\u009b'];
/** Begins a sequence that ends anywhere: node searches the rest of the line for each one, which must stay bounded. */
const operatingSystemCommand = '\u001b]';
const mostCommands = 64;

/**
 * The lines of a log, without colours and line ends, one at a time. A line that is too long to report a test is empty.
 * Only a line feed ends a line: a carriage return inside of one is text that a terminal would write over.
 */
export function* linesOf(log: string): Generator<string> {
  for (let from = 0; from <= log.length; ) {
    const feed = log.indexOf('\n', from);
    const end = feed === -1 ? log.length : feed;
    yield cleaned(log.slice(from, end));
    from = end + 1;
  }
}

function cleaned(raw: string): string {
  if (raw.length > longestLine) return '';
  const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
  if (!escapes.some((start) => line.includes(start))) return line;
  if (line.split(operatingSystemCommand).length > mostCommands) return '';
  return stripVTControlCharacters(line).replace(/\r$/, '');
}

/** The text of a heading that is drawn into a rule, as `==== text ====`, or `= text =` when it is long; null where a line is none. */
export function headingIn(line: string, mark: string): string | null {
  let start = 0;
  let end = line.length;
  while (line[start] === mark) start += 1;
  while (end > start && line[end - 1] === mark) end -= 1;
  const framed = start > 0 && end < line.length && line[start] === ' ' && line[end - 1] === ' ';
  return framed ? line.slice(start, end).trim() : null;
}

/** How many spaces a line begins with. */
export const indentOf = (line: string): number => line.length - line.trimStart().length;

/** A title without the time its test took, as in `adds (3 ms)`. */
export const withoutDuration = (title: string): string => title.replace(/ \(\d+(?:\.\d+)? ?m?s\)$/, '');

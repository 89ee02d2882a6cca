import { stripVTControlCharacters } from 'node:util';

/** The longest line that can report a test. Some tests print much longer lines. */
const longestLine = 64 * 1024;
/** The beginnings of escape sequences: the two-character form, and the one-character form. */
const escapes: readonly string[] = ['\u001b', '\u009b'];
/** Begins a sequence without a fixed end. Node searches the rest of the line for each one, so their number is limited. */
const operatingSystemCommand = '\u001b]';
const mostCommands = 64;

/**
 * Yields the lines of a log without colours and line ends. A line that is too long to report a test is yielded empty.
 * Only a line feed ends a line: a carriage return inside a line is text that a terminal would overwrite.
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

/** Returns the text of a heading such as `==== text ====`, or `= text =` when it is long; null if the line is not a heading. */
export function headingIn(line: string, mark: string): string | null {
  let start = 0;
  let end = line.length;
  while (line[start] === mark) start += 1;
  while (end > start && line[end - 1] === mark) end -= 1;
  const framed = start > 0 && end < line.length && line[start] === ' ' && line[end - 1] === ' ';
  return framed ? line.slice(start, end).trim() : null;
}

/** Returns the number of characters by which a line is indented. */
export const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Removes the duration from a title such as `adds (3 ms)`. */
export const withoutDuration = (title: string): string => title.replace(/ \(\d+(?:\.\d+)? ?m?s\)$/, '');

import { createJestParser } from './jest.ts';
import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector, mergeRuns } from './result-collector.ts';

const jest = createJestParser((titles) => withoutAmounts(titles.at(-1) ?? ''), true);

/**
 * Reads the packages of one repository, some of which run jest and others vitest, both without `--verbose`. Ids are in the
 * spelling of Multi-SWE-bench: the path of a file, and the title of a test that a runner names by itself, both without the
 * amount at their end (`withoutAmounts`).
 */
export const workspaceTitles: LogParser = { parse: (log) => mergeRuns([jest.parse(log), readVitest(log)]) };

const marks: Readonly<Record<string, TestStatus>> = {
  '✓': 'PASSED',
  '❯': 'FAILED',
  '×': 'FAILED',
  '↓': 'SKIPPED',
};

const entry = /^ *([✓❯×↓]) (\S.*)$/s;
/** The beginning of the note after vitest's name of a file, such as `(3 tests | 1 failed) 12ms`. */
const countMark = / \(\d+ tests?[ )]/;

/** Reads the lines of vitest's short report: one for each file, and below a file that fails one for each of its tests. */
function readVitest(log: string) {
  const collector = createResultCollector();
  let inFile = false;
  for (const line of linesOf(log)) {
    const [, mark = '', text = ''] = entry.exec(line) ?? [];
    const status = marks[mark];
    const count = text.search(countMark);
    if (status !== undefined && count > 0) {
      inFile = true;
      // A count with a note, such as `(3 tests | 1 skipped)`, is part of the spelling of a file that passes.
      collector.record(status === 'FAILED' ? text.slice(0, count) : withoutAmounts(text), status);
    } else if (status === undefined) inFile &&= line.startsWith('   ');
    else if (inFile) collector.record(withoutAmounts(text), status);
    else collector.recordOutside(withoutAmounts(text), status);
  }
  return collector.finish();
}

const isDigit = (character: string | undefined): boolean => character !== undefined && /^\p{Nd}$/u.test(character);
const isWord = (character: string | undefined): boolean =>
  character !== undefined && /^[\p{L}\p{N}_]$/u.test(character);
const count = /\s\(\p{Nd}+\s+tests\)$/u;
/** The longest title with an amount that is looked for. */
const longestTitle = 2048;

/**
 * Removes what these rows take for a duration: a number and a word at the end, also without a blank between them, and also in
 * parentheses (`adds (3 ms)`, `converts to base64`, `waits for 5 seconds`), and before it the number of tests in a file.
 */
function withoutAmounts(title: string): string {
  const text = title.trimEnd();
  if (text.length > longestTitle) return text;
  const start = amountIn(text);
  const kept = start > 0 ? text.slice(0, start).trimEnd() : text;
  return kept.replace(count, '').trimEnd() || text;
}

/** Returns the start of the amount at the end of a title; 0 if it ends without one. */
function amountIn(text: string): number {
  const end = text.endsWith(')') ? text.length - 1 : text.length;
  const word = startOf(text, end, isWord);
  const gap = startOf(text, word, (character) => /^\s$/.test(character ?? ''));
  // The number is a word of its own, or the beginning of the last word from its first digit on.
  // Something has to be left of the title.
  const apart = word < end && gap < word && gap > 1 && isDigit(text[gap - 1]);
  let last = apart ? gap : Math.max(1, word);
  while (!apart && last < end && !isDigit(text[last])) last += 1;
  if (!apart && last + 1 >= end) return 0;
  const digits = startOf(text, last, isDigit);
  const whole = text[digits - 1] === '.' ? startOf(text, digits - 1, isDigit) : digits;
  const start = text[whole - 1] === '(' ? whole - 1 : whole;
  return Math.max(1, start);
}

/** Returns the start of the run of such characters that ends at a position. */
function startOf(text: string, end: number, isPart: (character: string | undefined) => boolean): number {
  let start = end;
  while (start > 0 && isPart(text[start - 1])) start -= 1;
  return start;
}

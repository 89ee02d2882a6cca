import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const marks: Readonly<Record<string, TestStatus>> = {
  '✓': 'PASSED',
  '✔': 'PASSED',
  '×': 'FAILED',
  '✗': 'FAILED',
  '↓': 'SKIPPED',
  // To do.
  '□': 'SKIPPED',
};
const entry = /^ *([✓✔×✗↓□]) (\S.* > .+)$/s;
const mark = / [✓✔×✗↓□] (?=\S)/g;
/** The heading of the details of failures, which quote the code of tests. */
const details = /^⎯+ (?:Failed|Unhandled) /;
const failure = /^ *FAIL +(\S.*)$/s;
const failureMark = ' FAIL  ';

/**
 * Reads vitest with `--reporter=verbose`: each line has the full path to its test, `file > suite > test`, which is the id.
 * Failures are repeated below. Output without a line end may stand before a result.
 */
export const vitest: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let inDetails = false;
    for (const line of linesOf(log)) {
      inDetails ||= details.test(line);
      const [, found = '', title = ''] = entry.exec(line) ?? (inDetails ? null : entry.exec(afterText(line))) ?? [];
      const status = marks[found];
      const failed = failure.exec(line.slice(Math.max(0, line.lastIndexOf(failureMark))))?.[1]?.trimEnd();
      if (status !== undefined) collector.record(withoutNotes(title), status);
      else if (failed?.includes(' > ')) collector.record(failed, 'FAILED');
      else if (failed?.includes(' [ ') && failed.endsWith(' ]')) collector.recordProblem('collection-error', failed);
    }
    return collector.finish();
  },
};

/** Returns a line from its last mark on. */
function afterText(line: string): string {
  const last = [...line.matchAll(mark)].at(-1);
  return last === undefined ? '' : line.slice(last.index);
}

/**
 * Removes the notes after a title: skipped, number of retries, and duration, which older versions write last. It works word by
 * word from the end, since a pattern of optional parts takes time with the third power of a title's length.
 */
function withoutNotes(title: string): string {
  const words = title.trimEnd().split(' ');
  let count = withoutRetries(words, withoutDuration(words, withoutRetries(words, words.length)));
  if (count > 1 && words[count - 1] === '[skipped]') count -= 1;
  return words.slice(0, count).join(' ');
}

/** Returns how many of the first `count` words are left without `(retry x2)` and `(repeat x2)` at their end. */
function withoutRetries(words: readonly string[], count: number): number {
  let left = count;
  while (left > 2 && /^\((?:retry|repeat)$/.test(words[left - 2] ?? '') && /^x\d+\)$/.test(words[left - 1] ?? ''))
    left -= 2;
  return left;
}

/** Returns how many of the first `count` words are left without a duration at their end, such as `12ms` or `1.5 s`. */
function withoutDuration(words: readonly string[], count: number): number {
  const last = words[count - 1] ?? '';
  if (count > 1 && /^\d+(?:\.\d+)?m?s$/.test(last)) return count - 1;
  const apart = count > 2 && /^m?s$/.test(last) && /^\d+(?:\.\d+)?$/.test(words[count - 2] ?? '');
  return apart ? count - 2 : count;
}

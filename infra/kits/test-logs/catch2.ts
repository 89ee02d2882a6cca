import { indentOf, linesOf } from './lines.ts';
import type { LogParser } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const rule = /^-{79}$/;
/** An assertion, after its file and line. */
const assertion = /^\S.*?(?::\d+|\(\d+\)): (PASSED|FAILED):?$/s;
const dots = /^\.{79}$/;
const duration = /^\d+\.\d{3} s: (\S.*)$/s;
/** Far more lines than a block has before its assertion. */
const longestBlock = 60;

/**
 * Reads the console reporter of Catch2, run with `-d yes`, whose ids are names of test cases. The durations name all test cases
 * and their sections. The first failure of each section ends a block that is written at once: a title between two rules, and
 * the assertion. Later failures of the same section follow it.
 *
 * With `-s`, passing assertions begin blocks, so that later failures belong to a test case by their position only. No passes
 * are read from such a log.
 */
export const catch2: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    const timed: string[] = [];
    const recent: string[] = [];
    let last: string | null = null;
    let passesShown = false;
    for (const line of linesOf(log)) {
      const word = assertion.exec(line)?.[1];
      passesShown ||= word === 'PASSED';
      if (word === 'FAILED') {
        const own = nameAbove(recent);
        if (own !== null) collector.record(own, 'FAILED');
        else if (last !== null) collector.recordOutside(last, 'FAILED');
        last = own ?? last;
      }
      const test = duration.exec(line)?.[1];
      if (test !== undefined) timed.push(test);
      recent.push(line);
      if (recent.length > longestBlock) recent.shift();
    }
    if (passesShown) collector.recordProblem('malformed', 'the tests ran with -s; run them with -d yes alone');
    for (const test of passesShown ? [] : timed) collector.record(test, 'PASSED');
    return collector.finish();
  },
};

/** The name of the test case whose block these lines end: a title between rules, a location, dots and an empty line. */
function nameAbove(recent: readonly string[]): string | null {
  const [second = '', , dotted = '', empty = 'none'] = recent.slice(-4);
  if (!rule.test(second) || !dots.test(dotted) || empty !== '') return null;
  const above = recent.slice(0, -4);
  const title = above.slice(above.findLastIndex((line) => rule.test(line)) + 1);
  return title.length === 0 || title.length === above.length ? null : nameIn(title);
}

/** Joins the lines of a long title: those after the first are indented to the text behind its colon, sections otherwise. */
function nameIn(lines: readonly string[]): string {
  const [first = '', ...others] = lines;
  const colon = first.indexOf(': ');
  const end = others.findIndex((line) => indentOf(line) !== (colon === -1 ? 0 : colon + 2));
  return [first, ...others.slice(0, end === -1 ? others.length : end)].map((line) => line.trim()).join(' ');
}

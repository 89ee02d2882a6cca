import { fromMark, fromPosition, indentOf, linesOf, withoutDuration, withoutNote } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector, type ResultCollector } from './result-collector.ts';
import { createTitlePath } from './title-path.ts';

const entry = /^( {2,})(?:(✓|✔|√|-|\d+\)) )?(\S.*)$/s;
/** The mark of a test that passed, and that of a failure with its number. */
const tick = /[✓✔√] \S/;
const cross = / {2}(\d+)\) \S/;
const totals = /^ {2}\d+ passing \(/;
/** Far more than any test has suites around it. */
const deepestPath = 50;
const numberedFailure = /^ {2}\d+\) (.*)$/s;

/**
 * Reads mocha's `spec` report. Ids are mocha's full titles: the suites' and the test's, separated by blanks. A failing test
 * has a number instead of a tick. Text printed without a line end may stand before a tick. Text printed at a suite's indentation is taken for a suite. After the totals mocha repeats
 * the failures, each with its full path of titles: no passes are read from there on.
 */
export const mocha: LogParser = createParser((titles) => titles.join(' '));

/** A duration, or what Multi-SWE-bench takes for one, such as `(async)`. */
const word = /^ \(\d*\.?\d*\s*\w+\)$/;

/** Reads ids in the spelling of Multi-SWE-bench, the test's title alone, without a word in parentheses at its end. */
export const mochaTitles: LogParser = createParser(
  (titles) => titles.at(-1) ?? '',
  (title) => withoutNote(title, word),
);

type Spelling = (titles: readonly string[]) => string;

function createParser(idOf: Spelling, titleOf: (text: string) => string = withoutDuration): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      const path = createTitlePath();
      const readFailure = createFailureReader(collector, idOf);
      let inTree = true;
      let failures = 0;
      for (const line of linesOf(log)) {
        readFailure(line);
        if (totals.test(line)) inTree = false;
        const whole = entry.exec(line) ?? [];
        const printed = whole[2] === undefined && inTree ? entry.exec(afterText(line, failures + 1)) : null;
        const [, indent, mark, text = ''] = printed ?? whole;
        // A repeated failure looks like a test at the top level, but its first title may be that of a suite.
        if (indent === undefined || (!inTree && indent.length === 2)) continue;
        const title = titleOf(text.trimEnd());
        const found = inTree ? collector.record : collector.recordOutside;
        if (inTree && mark?.endsWith(')')) failures += 1;
        if (mark !== undefined) found(idOf(path.to(indent.length, title)), statusOf(mark));
        else if (inTree) path.open(indent.length, title);
      }
      return collector.finish();
    },
  };
}

/** Returns the result that stands after printed text: a tick, or a failure with the next number; empty if there is none. */
function afterText(line: string, number: number): string {
  const failure = cross.exec(line);
  if (failure === null || Number(failure[1]) !== number) return fromMark(line, tick);
  return fromPosition(line, failure.index + 2);
}

/** Returns a reader of repeated failures: `  1) suite`, then one title per line, each indented by two more, up to a colon. */
function createFailureReader(collector: ResultCollector, idOf: Spelling): (line: string) => void {
  let titles: readonly string[] = [];
  return (line) => {
    const first = numberedFailure.exec(line)?.[1];
    const isNext = titles.length > 0 && indentOf(line) === 5 + 2 * titles.length && titles.length < deepestPath;
    if (first !== undefined) titles = [first];
    else if (isNext) titles = [...titles, line.trim()];
    else titles = [];
    const id = idOf(titles).trimEnd();
    if (id.endsWith(':')) collector.recordOutside(id.slice(0, -1), 'FAILED');
  };
}

function statusOf(mark: string): TestStatus {
  if (mark === '-') return 'SKIPPED';
  return mark.endsWith(')') ? 'FAILED' : 'PASSED';
}

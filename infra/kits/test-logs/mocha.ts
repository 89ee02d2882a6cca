import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { indentOf, linesOf, withoutDuration } from './lines.ts';
import { createTally, type LogParser, type Tally } from './parsed-tests.ts';
import { createTitlePath } from './title-path.ts';

const entry = /^( {2,})(?:(✓|✔|√|-|\d+\)) )?(\S.*)$/s;
const totals = /^ {2}\d+ passing \(/;
/** Far beyond the suites of any test. */
const deepest = 50;
const told = /^ {2}\d+\) (.*)$/s;

/**
 * mocha's `spec` report. Ids are mocha's full titles: the suites' and the test's, with blanks between. A failing test has a
 * number in place of a tick. Text that a test prints as far in as a suite is taken for one. After the totals the failures
 * are told again, each by its whole way: passes end there.
 */
export const mocha: LogParser = {
  parse: (log) => {
    const tally = createTally();
    const path = createTitlePath();
    const retold = createRetold(tally);
    let inTree = true;
    for (const line of linesOf(log)) {
      retold(line);
      if (totals.test(line)) inTree = false;
      const [, indent, mark, text = ''] = entry.exec(line) ?? [];
      // What is told again begins as a test at the top does, and may be a suite.
      if (indent === undefined || (!inTree && indent.length === 2)) continue;
      const title = withoutDuration(text.trimEnd());
      const found = inTree ? tally.record : tally.against;
      if (mark !== undefined) found(path.to(indent.length, title).join(' '), statusOf(mark));
      else if (inTree) path.open(indent.length, title);
    }
    return tally.done();
  },
};

/** `  1) suite`, then each title of the way two further in, up to that of the test, which ends in a colon. */
function createRetold(tally: Tally): (line: string) => void {
  let way: readonly string[] = [];
  return (line) => {
    const first = told.exec(line)?.[1];
    const isNext = way.length > 0 && indentOf(line) === 5 + 2 * way.length && way.length < deepest;
    if (first !== undefined) way = [first];
    else if (isNext) way = [...way, line.trim()];
    else way = [];
    const id = way.join(' ').trimEnd();
    if (id.endsWith(':')) tally.against(id.slice(0, -1), 'FAILED');
  };
}

function statusOf(mark: string): TestStatus {
  if (mark === '-') return 'SKIPPED';
  return mark.endsWith(')') ? 'FAILED' : 'PASSED';
}

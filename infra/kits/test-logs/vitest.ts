import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { linesOf } from './lines.ts';
import { createTally, type LogParser } from './parsed-tests.ts';

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
const failure = /^ *FAIL +(\S.*)$/s;

/**
 * vitest with `--reporter=verbose`: each line has the whole way to its test, `file > suite > test`, which is the id (also
 * SWE-bench's: swebench/harness/log_parsers/javascript.py, `parse_log_vitest`). Failures are named again below.
 */
export const vitest: LogParser = {
  parse: (log) => {
    const tally = createTally();
    for (const line of linesOf(log)) {
      const [, mark = '', title = ''] = entry.exec(line) ?? [];
      const status = marks[mark];
      const failed = failure.exec(line)?.[1]?.trimEnd();
      if (status !== undefined) tally.record(withoutNotes(title), status);
      else if (failed?.includes(' > ')) tally.record(failed, 'FAILED');
      else if (failed?.includes(' [ ') && failed.endsWith(' ]')) tally.problem('collection-error', failed);
    }
    return tally.done();
  },
};

/** What follows a title: that it was skipped, how often it was tried again, and the time it took, which older versions have last. */
const notes =
  /(?: \[skipped\])?(?: \((?:retry|repeat) x\d+\))*(?: \d+(?:\.\d+)? ?m?s)?(?: \((?:retry|repeat) x\d+\))*$/;
const withoutNotes = (title: string): string => title.trimEnd().replace(notes, '');

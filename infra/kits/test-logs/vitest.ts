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
const failure = /^ *FAIL +(\S.*)$/s;

/**
 * Reads vitest with `--reporter=verbose`: each line has the full path to its test, `file > suite > test`, which is the id
 * (also SWE-bench's: swebench/harness/log_parsers/javascript.py, `parse_log_vitest`). Failures are repeated below.
 */
export const vitest: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    for (const line of linesOf(log)) {
      const [, mark = '', title = ''] = entry.exec(line) ?? [];
      const status = marks[mark];
      const failed = failure.exec(line)?.[1]?.trimEnd();
      if (status !== undefined) collector.record(withoutNotes(title), status);
      else if (failed?.includes(' > ')) collector.record(failed, 'FAILED');
      else if (failed?.includes(' [ ') && failed.endsWith(' ]')) collector.recordProblem('collection-error', failed);
    }
    return collector.finish();
  },
};

/** The notes after a title: skipped, number of retries, and duration, which older versions write last. */
const notes =
  /(?: \[skipped\])?(?: \((?:retry|repeat) x\d+\))*(?: \d+(?:\.\d+)? ?m?s)?(?: \((?:retry|repeat) x\d+\))*$/;
const withoutNotes = (title: string): string => title.trimEnd().replace(notes, '');

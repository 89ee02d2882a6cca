import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = {
  PASS: 'PASSED',
  FAIL: 'FAILED',
  SKIP: 'SKIPPED',
  XFAIL: 'XFAIL',
  XPASS: 'XPASS',
  ERROR: 'ERROR',
};
const result = /^\s*(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR):\s(.+)$/s;
const total = /^# TOTAL: +(\d+)$/;

/**
 * Reads `make check` of automake, whose names of tests are files; those of its TAP driver have a number and a description
 * after the file. Other makefiles print the same lines, also indented (`parse_log_jq`). A total that differs from the lines before it is a problem.
 */
export const automake: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let reported = 0;
    for (const line of linesOf(log)) {
      const [, word = '', name = ''] = result.exec(line) ?? [];
      const status = statuses[word];
      if (status !== undefined) {
        reported += 1;
        collector.record(name, status);
      }
      const count = total.exec(line)?.[1];
      if (count === undefined) continue;
      if (Number(count) !== reported)
        collector.recordProblem('miscounted', `${count} tests were to run, ${reported} reported`);
      reported = 0;
    }
    return collector.finish();
  },
};

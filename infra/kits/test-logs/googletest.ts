import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = { OK: 'PASSED', FAILED: 'FAILED', SKIPPED: 'SKIPPED' };
const startMark = '[ RUN ';
const started = /^\[ RUN {6}\] (\S+)$/;
/** A result. Output without a line end may stand before it. */
const ended = /\[ {2,7}(OK|FAILED|SKIPPED) {1,2}\] (\S+)(?:, where .*?)?( \(\d+ ms\))?$/s;
const opened = /^\[={10}\] Running (\d+) tests? from /;
const closed = /^\[={10}\] \d+ tests? from .* ran\./;

/**
 * Reads GoogleTest: `Suite.Name`, with `/0` for the value of a parameter. The lists at its end name failures again, without
 * their time; passes need it, unless their test runs (`--gtest_print_time=0`). A test that began and did not end took its program down.
 */
export const googletest: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let running = new Set<string>();
    let seen: Set<string> | null = null;
    let expected = 0;
    const leave = (): void => {
      for (const name of running) collector.record(name, 'ERROR');
      if (seen !== null)
        collector.recordProblem('crashed', `a test program ended after ${seen.size} of its ${expected} tests`);
      running = new Set();
      seen = null;
    };
    for (const line of linesOf(log)) {
      const count = opened.exec(line)?.[1];
      if (count !== undefined) {
        leave();
        seen = new Set();
        expected = Number(count);
      } else if (closed.test(line)) {
        if (seen !== null && seen.size !== expected)
          collector.recordProblem('miscounted', `${expected} tests were to run, ${seen.size} reported`);
        seen = null;
        running = new Set();
      }
      const begun = started.exec(line.slice(Math.max(0, line.lastIndexOf(startMark))))?.[1];
      if (begun !== undefined) running.add(begun);
      const [, word = '', name = '', time] = ended.exec(line.slice(Math.max(0, line.lastIndexOf('[  ')))) ?? [];
      const status = statuses[word];
      if (status === undefined) continue;
      if (time === undefined && !running.has(name)) collector.recordOutside(name, status);
      else {
        seen?.add(name);
        collector.record(name, status);
        running.delete(name);
      }
    }
    leave();
    return collector.finish();
  },
};

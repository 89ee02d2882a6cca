import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = { ok: 'PASSED', FAILED: 'FAILED', ignored: 'SKIPPED' };
const opening = /^running (\d+) tests?$/;
const outcome = /^(ok|FAILED|ignored)(?:$|[ ,])/;

/** An entry in the list after the details of failures: a path, or that of a documentation test with its line. */
const listed = /^ {4}([\w:]+|\S+ - .*\(line \d+\).*)$/s;

/**
 * Reads `cargo test`: unit and documentation tests of any number of crates. Results stand between `running N tests` and the
 * details of failures. The details quote tests, so only failures, and the list of them, are read there. Ids are Rust's
 * paths, without the crate.
 */
export const cargo: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let expected: number | null = null;
    let seen = new Set<string>();
    let running: string | null = null;
    let inFailures = false;
    for (const line of linesOf(log)) {
      const count = opening.exec(line)?.[1];
      if (count !== undefined) {
        expected = Number(count);
        seen = new Set();
        running = null;
      } else if (line.startsWith('error: could not compile')) collector.recordProblem('collection-error', line);
      inFailures ||= line === 'failures:';
      const failed = inFailures ? listed.exec(line)?.[1] : undefined;
      if (failed !== undefined) collector.recordOutside(failed, 'FAILED');
      if (expected !== null && (line === 'failures:' || line === 'successes:' || line.startsWith('test result: '))) {
        if (seen.size !== expected)
          collector.recordProblem('miscounted', `${expected} tests were to run, ${seen.size} reported`);
        expected = null;
      }
      const mark = line.startsWith('test ') ? line.indexOf(' ... ') : -1;
      if (mark !== -1) running = line.slice('test '.length, mark).replace(/ - should panic$/, '');
      // With --nocapture, a test's output stands between its name and its result.
      const status = statuses[outcome.exec(mark === -1 ? line : line.slice(mark + 5))?.[1] ?? ''];
      if (running === null || status === undefined) continue;
      if (expected === null) collector.recordOutside(running, status);
      else {
        seen.add(running);
        collector.record(running, status);
      }
    }
    if (expected !== null)
      collector.recordProblem('crashed', `a test program ended after ${seen.size} of its ${expected} tests`);
    return collector.finish();
  },
};

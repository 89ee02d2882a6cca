import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = { ok: 'PASSED', FAILED: 'FAILED', ignored: 'SKIPPED' };
const opening = /^running (\d+) tests?$/;
const outcome = /^(ok|FAILED|ignored)(?:$|[ ,])/;
/** A result whose line begins with the output of another test. */
const afterText = /test ([\w:]+)(?: - should panic)? \.\.\. (ok|FAILED|ignored|ignored, .*)$/s;

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
    let running: Running | null = null;
    let inFailures = false;
    const record = (name: string, status: TestStatus): void => {
      if (expected === null) collector.recordOutside(name, status);
      else {
        seen.add(name);
        collector.record(name, status);
      }
    };
    const close = (): void => {
      if (running?.open !== null && running?.done === false) record(running.name, running.open);
      running = null;
    };
    for (const line of linesOf(log)) {
      const count = opening.exec(line)?.[1];
      if (count !== undefined) {
        if (expected !== null) crashed();
        expected = Number(count);
        seen = new Set();
        running = null;
      } else if (line.startsWith('error: could not compile')) collector.recordProblem('collection-error', line);
      inFailures ||= line === 'failures:';
      const failed = inFailures ? listed.exec(line)?.[1] : undefined;
      if (failed !== undefined) collector.recordOutside(failed, 'FAILED');
      if (expected !== null && (line === 'failures:' || line === 'successes:' || line.startsWith('test result: '))) {
        close();
        if (seen.size !== expected)
          collector.recordProblem('miscounted', `${expected} tests were to run, ${seen.size} reported`);
        expected = null;
      }
      const test = testIn(line);
      if (test !== null) {
        close();
        running = { name: test.name, open: null, done: false };
      }
      // With --nocapture, a test's output stands between its name and its result, perhaps without a line end.
      const text = test === null ? line : test.rest;
      const status = statuses[outcome.exec(text)?.[1] ?? ''];
      if (running === null) continue;
      if (status === undefined) running.open = statusAtEnd(text) ?? running.open;
      else {
        running.done = true;
        record(running.name, status);
      }
    }
    function crashed(): void {
      if (running?.done === false) record(running.name, 'ERROR');
      collector.recordProblem('crashed', `a test program ended after ${seen.size} of its ${expected} tests`);
    }
    if (expected !== null) crashed();
    return collector.finish();
  },
};

/** A test whose name was written. */
interface Running {
  readonly name: string;
  /** The status at the end of printed text, which may be a part of that text. */
  open: TestStatus | null;
  done: boolean;
}

/** Reads the name of a test and what follows it. Another test's output may stand before a name that its result follows. */
function testIn(line: string): { readonly name: string; readonly rest: string } | null {
  const mark = line.startsWith('test ') ? line.indexOf(' ... ') : -1;
  if (mark !== -1)
    return { name: line.slice('test '.length, mark).replace(/ - should panic$/, ''), rest: line.slice(mark + 5) };
  const [, name, rest = ''] = afterText.exec(line) ?? [];
  return name === undefined ? null : { name, rest };
}

function statusAtEnd(text: string): TestStatus | null {
  const word = ['ok', 'FAILED'].find((one) => text.endsWith(one));
  return word === undefined ? null : (statuses[word] ?? null);
}

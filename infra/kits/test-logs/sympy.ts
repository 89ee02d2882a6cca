import { headingIn, linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

/** The marks of sympy/testing/runtests.py: f is an expected failure, X an unexpected pass. */
const endings: Readonly<Record<string, TestStatus>> = {
  ok: 'PASSED',
  F: 'FAILED',
  E: 'ERROR',
  f: 'XFAIL',
  X: 'XPASS',
  s: 'SKIPPED',
};
const outcome = /^(ok|[FEfXs])(?: .*)?$/s;
const failure = /^\S+\.py:(test_\w+)$/;
const named = /^(test_\w+)(?: (.*))?$/s;

/**
 * Reads sympy's own runner, `bin/test --verbose`. Ids are bare names, as in SWE-bench's lists: the worst of all tests of one
 * name counts. A name is written before its test runs, so printed text may stand before the result. Each failure also has a
 * heading `____ file.py:test_name ____`.
 */
export const sympy: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let running: string | null = null;
    for (const line of linesOf(log)) {
      // The longest headings leave no space for the rule.
      const failed = failure.exec(headingIn(line, '_') ?? line.trim())?.[1];
      if (failed !== undefined) collector.record(failed, 'FAILED');
      const [, name, rest = ''] = named.exec(line) ?? [];
      const status = statusOf(name === undefined ? line.trimStart() : rest.trimStart());
      const test: string | null = name ?? running;
      if (test !== null && status !== null) collector.record(test, status);
      if (name !== undefined) running = name;
    }
    return collector.finish();
  },
};

function statusOf(text: string): TestStatus | null {
  const word = outcome.exec(text)?.[1];
  return word === undefined ? null : (endings[word] ?? null);
}

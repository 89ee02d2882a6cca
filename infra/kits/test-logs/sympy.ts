import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { headingIn, linesOf } from './lines.ts';
import { createTally, type LogParser } from './parsed-tests.ts';

/** sympy/testing/runtests.py: f is an expected failure, X a test that was expected to fail and passed. */
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
 * sympy's own runner, `bin/test --verbose`. Ids are bare names, as SWE-bench's lists have them: tests of one name in
 * several files count as their worst. A name is written before its test runs, so printed text may stand before the result;
 * each failure has a heading `____ file.py:test_name ____` besides.
 */
export const sympy: LogParser = {
  parse: (log) => {
    const tally = createTally();
    let running: string | null = null;
    for (const line of linesOf(log)) {
      // The longest have no room for the rule.
      const failed = failure.exec(headingIn(line, '_') ?? line.trim())?.[1];
      if (failed !== undefined) tally.record(failed, 'FAILED');
      const [, name, rest = ''] = named.exec(line) ?? [];
      const status = statusOf(name === undefined ? line.trimStart() : rest.trimStart());
      const test: string | null = name ?? running;
      if (test !== null && status !== null) tally.record(test, status);
      if (name !== undefined) running = name;
    }
    return tally.done();
  },
};

function statusOf(text: string): TestStatus | null {
  const word = outcome.exec(text)?.[1];
  return word === undefined ? null : (endings[word] ?? null);
}

/** The statuses of a test, best first, in pytest's words. XFAIL: it failed as expected. XPASS: it passed unexpectedly. */
export const testStatuses = ['PASSED', 'XFAIL', 'SKIPPED', 'XPASS', 'FAILED', 'ERROR'] as const;
export type TestStatus = (typeof testStatuses)[number];

/**
 * Something that a log says besides the status of single tests. It explains missing tests; it is never a verdict.
 *
 * - `collection-error`: tests could not be loaded or compiled
 * - `crashed`: the runner ended before its tests did
 * - `miscounted`: the runner announced another number of tests than it reported
 * - `malformed`: a report is not in its format
 */
export interface LogProblem {
  readonly kind: 'collection-error' | 'crashed' | 'miscounted' | 'malformed';
  readonly detail: string;
}

export interface ParsedTests {
  /** The tests in the runner's report, by id. */
  readonly tests: ReadonlyMap<string, TestStatus>;
  /** Tests that fail according to a line outside the report, and that the report does not name. */
  readonly failedElsewhere: ReadonlyMap<string, TestStatus>;
  /** The first problems only, since a log can hold any number. */
  readonly problems: readonly LogProblem[];
}

/**
 * Reads the output of one test runner.
 *
 * Contract:
 * - Never throws: a log is whatever a sandbox wrote.
 * - Takes time linear in the log's length. So a pattern's `.` must match everything (flag s): one that stops at a foreign
 *   line end is retried from each position before it.
 * - A test that was reported more than once is as bad as its worst report.
 * - A test that the runner reports as failed stays failed, whatever lines stand before, between or after those of the
 *   runner, since any process of a test may print some. So passes are taken from the runner's report alone, as far as it
 *   can be recognised, and failures from anywhere in the log.
 */
export interface LogParser {
  readonly parse: (log: string) => ParsedTests;
}

/**
 * The position of a test in a report that names it by its title alone, below its suite or before its package. A line
 * printed in between shifts the following tests to another position. So a failure counts against all tests of its title,
 * except those at the top level and those whose suite is known to have passed.
 */
export interface ReportPosition {
  /** The suite's id; empty at the top level. */
  readonly suite: string;
  readonly title: string;
}

import { type TestStatus, testStatuses } from '../../../workflows/contracts/resolution.ts';

/**
 * What a log says besides single tests. None of them is a verdict: they explain tests that are missing.
 *
 * - `collection-error`: tests could not be loaded or compiled
 * - `crashed`: the runner ended before its tests did
 * - `miscounted`: the runner names another number of tests than it reported
 * - `malformed`: a report is not in its format
 */
export interface LogProblem {
  readonly kind: 'collection-error' | 'crashed' | 'miscounted' | 'malformed';
  readonly detail: string;
}

export interface ParsedTests {
  /** The tests of the runner's report. */
  readonly tests: ReadonlyMap<string, TestStatus>;
  /** Tests that a line elsewhere says to have failed, and that the report does not name. */
  readonly failedElsewhere: ReadonlyMap<string, TestStatus>;
  /** The first ones: a log can hold any number. */
  readonly problems: readonly LogProblem[];
}

/**
 * Reads the output of one test runner.
 *
 * Contract:
 * - Never throws: a log is whatever a sandbox wrote.
 * - Takes time linear in the log's length. So a pattern's `.` is to match everything (flag s), since one that stops at a
 *   foreign line end is tried again from each place before it.
 * - A test that was reported more than once did as badly as its worst report.
 * - A test that the runner reports as failed stays so, whatever lines stand before, between or after those of the runner:
 *   any process of a test may print some. So passes are taken from the runner's report alone, as far as it can be made out,
 *   and failures from wherever they stand.
 */
export interface LogParser {
  readonly parse: (log: string) => ParsedTests;
}

/**
 * Where a test stands in a report that names it by its title alone, below its suite or before its package. A line printed in
 * between moves what follows to another place. So a failure counts against all tests of its title, save those at the top
 * and those whose suite is known to have passed.
 */
export interface Place {
  /** The suite's id; empty at the top. */
  readonly suite: string;
  readonly title: string;
}

export interface Tally {
  /** Ids are trimmed: what surrounds one is the runner's layout. One that is empty, or beyond the limits, counts for nothing. */
  readonly record: (id: string, status: TestStatus, place?: Place) => void;
  /** A failure that stands outside of the report; anything else that stands there counts for nothing. */
  readonly against: (id: string, status: TestStatus, place?: Place) => void;
  /** How a suite ended, where it is no test itself. */
  readonly suite: (id: string, status: TestStatus) => void;
  readonly problem: (kind: LogProblem['kind'], detail: string) => void;
  readonly done: () => ParsedTests;
}

/** No test's name is longer, and no suite's names are, taken together: what is beyond was written to fill memory. */
const longestId = 8 * 1024;
const keptCharacters = 64 * 1024 * 1024;
const keptProblems = 20;
const detailCharacters = 200;

/** Gathers what a parser finds, with the contract's rules. */
export function createTally(): Tally {
  const tests = new Map<string, TestStatus>();
  const elsewhere = new Map<string, TestStatus>();
  const suites = new Map<string, TestStatus>();
  const places = new Map<string, Place>();
  const failedTitles = new Set<string>();
  const problems: LogProblem[] = [];
  let characters = 0;
  const problem: Tally['problem'] = (kind, detail) => {
    if (problems.length < keptProblems) problems.push({ kind, detail: detail.trim().slice(0, detailCharacters) });
  };
  const keep = (into: Map<string, TestStatus>, id: string, status: TestStatus): string | null => {
    const key = id.length > longestId ? '' : id.trim();
    if (key === '') return null;
    const earlier = into.get(key);
    if (earlier === undefined) characters += key.length;
    if (characters > keptCharacters) {
      problem('malformed', 'the names of its tests are too many to keep');
      return null;
    }
    into.set(key, worse(earlier ?? status, status));
    return key;
  };
  const noteTitle = (status: TestStatus, place: Place | undefined): void => {
    if (place !== undefined && isBad(status)) failedTitles.add(place.title.trim());
  };
  return {
    record: (id, status, place) => {
      noteTitle(status, place);
      const key = keep(tests, id, status);
      if (key !== null && place !== undefined && place.suite !== '') places.set(key, place);
    },
    against: (id, status, place) => {
      if (!isBad(status)) return;
      noteTitle(status, place);
      keep(elsewhere, id, status);
    },
    suite: (id, status) => keep(suites, id, status),
    problem,
    done: () => {
      for (const [id, status] of elsewhere) {
        const reported = tests.get(id);
        if (reported === undefined) continue;
        tests.set(id, worse(reported, status));
        elsewhere.delete(id);
      }
      const doubted = [...places].filter(([, { title }]) => failedTitles.has(title.trim()));
      // A suite may be a test itself, and its id is shorter than those below it.
      for (const [id, { suite }] of doubted.sort(([one], [other]) => one.length - other.length)) {
        const ofSuite = suites.get(suite) ?? tests.get(suite);
        const itself = tests.get(id);
        if ((ofSuite === undefined || isBad(ofSuite)) && (itself === undefined || !isBad(itself)))
          tests.set(id, 'FAILED');
      }
      return { tests, failedElsewhere: elsewhere, problems };
    },
  };
}

const isBad = (status: TestStatus): boolean => status === 'FAILED' || status === 'ERROR' || status === 'XPASS';

function worse(one: TestStatus, other: TestStatus): TestStatus {
  return testStatuses.indexOf(one) > testStatuses.indexOf(other) ? one : other;
}

/** A parser whose ids are spelt in another way, for lists that were made with that spelling. */
export function respelt(parser: LogParser, spell: (id: string) => string): LogParser {
  return {
    parse: (log) => {
      const { tests, failedElsewhere, problems } = parser.parse(log);
      const tally = createTally();
      for (const [id, status] of tests) tally.record(spell(id), status);
      for (const [id, status] of failedElsewhere) tally.against(spell(id), status);
      return { ...tally.done(), problems };
    },
  };
}

/** A report, and the failures that the same log names in another form of the runner. */
export function withFailures(report: ParsedTests, other: ParsedTests): ParsedTests {
  const tally = createTally();
  for (const [id, status] of report.tests) tally.record(id, status);
  for (const [id, status] of [...report.failedElsewhere, ...other.tests, ...other.failedElsewhere]) {
    tally.against(id, status);
  }
  return { ...tally.done(), problems: report.problems };
}

/** What the logs of several runs say, taken together. */
export function together(runs: readonly ParsedTests[]): ParsedTests {
  const [only] = runs;
  if (only !== undefined && runs.length === 1) return only;
  const tally = createTally();
  for (const { tests, failedElsewhere, problems } of runs) {
    for (const [id, status] of tests) tally.record(id, status);
    for (const [id, status] of failedElsewhere) tally.against(id, status);
    for (const { kind, detail } of problems) tally.problem(kind, detail);
  }
  return tally.done();
}

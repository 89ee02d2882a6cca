import {
  type LogParser,
  type LogProblem,
  type ParsedTests,
  type ReportPosition,
  type TestStatus,
  testStatuses,
} from './log-parser.ts';

/** Collects what a parser finds, and applies the rules of the LogParser contract. */
export interface ResultCollector {
  /** Records a test of the report. Ids are trimmed; an empty id, and one beyond the limits, is ignored. */
  readonly record: (id: string, status: TestStatus, position?: ReportPosition) => void;
  /** Records a failure found outside the report; any other status found there is ignored. */
  readonly recordOutside: (id: string, status: TestStatus, position?: ReportPosition) => void;
  /** Records the status of a suite that is not itself a test. */
  readonly recordSuite: (id: string, status: TestStatus) => void;
  readonly recordProblem: (kind: LogProblem['kind'], detail: string) => void;
  readonly finish: () => ParsedTests;
}

// Far above the longest test name, and above all names of a suite together: more was printed to fill memory.
const longestId = 8 * 1024;
const keptCharacters = 64 * 1024 * 1024;
const keptProblems = 20;
const detailCharacters = 200;

export function createResultCollector(): ResultCollector {
  const tests = new Map<string, TestStatus>();
  const elsewhere = new Map<string, TestStatus>();
  const suites = new Map<string, TestStatus>();
  const positions = new Map<string, ReportPosition>();
  const failedTitles = new Set<string>();
  const problems: LogProblem[] = [];
  let characters = 0;
  const recordProblem: ResultCollector['recordProblem'] = (kind, detail) => {
    if (problems.length < keptProblems) problems.push({ kind, detail: detail.trim().slice(0, detailCharacters) });
  };
  const keep = (into: Map<string, TestStatus>, id: string, status: TestStatus): string | null => {
    const key = id.length > longestId ? '' : id.trim();
    if (key === '') return null;
    const earlier = into.get(key);
    if (earlier === undefined) characters += key.length;
    if (characters > keptCharacters) {
      recordProblem('malformed', 'the names of its tests are too many to keep');
      return null;
    }
    into.set(key, worse(earlier ?? status, status));
    return key;
  };
  const noteTitle = (status: TestStatus, position: ReportPosition | undefined): void => {
    if (position !== undefined && isBad(status)) failedTitles.add(position.title.trim());
  };
  return {
    record: (id, status, position) => {
      noteTitle(status, position);
      const key = keep(tests, id, status);
      if (key !== null && position !== undefined && position.suite !== '') positions.set(key, position);
    },
    recordOutside: (id, status, position) => {
      if (!isBad(status)) return;
      noteTitle(status, position);
      keep(elsewhere, id, status);
    },
    recordSuite: (id, status) => keep(suites, id, status),
    recordProblem,
    finish: () => {
      for (const [id, status] of elsewhere) {
        const reported = tests.get(id);
        if (reported === undefined) continue;
        tests.set(id, worse(reported, status));
        elsewhere.delete(id);
      }
      const doubted = [...positions].filter(([, { title }]) => failedTitles.has(title.trim()));
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

/** Returns a parser that spells ids differently, for lists that were made with that spelling. */
export function withSpelling(parser: LogParser, spell: (id: string) => string): LogParser {
  return {
    parse: (log) => {
      const { tests, failedElsewhere, problems } = parser.parse(log);
      const collector = createResultCollector();
      for (const [id, status] of tests) collector.record(spell(id), status);
      for (const [id, status] of failedElsewhere) collector.recordOutside(spell(id), status);
      return { ...collector.finish(), problems };
    },
  };
}

/** Adds to a report the failures that the same log names in another format of the runner. */
export function withFailures(report: ParsedTests, other: ParsedTests): ParsedTests {
  const collector = createResultCollector();
  for (const [id, status] of report.tests) collector.record(id, status);
  for (const [id, status] of [...report.failedElsewhere, ...other.tests, ...other.failedElsewhere]) {
    collector.recordOutside(id, status);
  }
  return { ...collector.finish(), problems: report.problems };
}

/** Merges the logs of several runs of a test runner. */
export function mergeRuns(runs: readonly ParsedTests[]): ParsedTests {
  const [only] = runs;
  if (only !== undefined && runs.length === 1) return only;
  const collector = createResultCollector();
  for (const { tests, failedElsewhere, problems } of runs) {
    for (const [id, status] of tests) collector.record(id, status);
    for (const [id, status] of failedElsewhere) collector.recordOutside(id, status);
    for (const { kind, detail } of problems) collector.recordProblem(kind, detail);
  }
  return collector.finish();
}

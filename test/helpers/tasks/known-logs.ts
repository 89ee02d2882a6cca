import type { LogParserName, TestStatus } from '../../../infra/kits/test-logs/index.ts';

type Statuses = Readonly<Record<string, TestStatus>>;

export interface KnownLog {
  /** The names of files in test/fixtures/logs/known, without their ending. */
  readonly logs: readonly string[];
  readonly parser: LogParserName;
  /** The right statuses. A test that the log does not name is left out. */
  readonly tests: Statuses;
  /** Ids that tests print as if they were results, which no task requires. */
  readonly printed?: readonly string[];
  /** The process of the tests ended before they did. */
  readonly crashed?: true;
}

/** Returns the statuses of tests with a text before and after each name. */
const named = (before: string, tests: Statuses, after = ''): Statuses =>
  Object.fromEntries(Object.entries(tests).map(([name, status]) => [`${before}${name}${after}`, status]));

const pytestNamed = named('test_known.py::', {
  test_adds: 'PASSED',
  test_fails: 'FAILED',
  test_errors: 'ERROR',
  test_prints: 'PASSED',
  test_prints_open: 'PASSED',
  test_fails_open: 'FAILED',
  'test_cases[a b]': 'PASSED',
  'test_cases[[x]]': 'PASSED',
  test_parts: 'FAILED',
  test_good_parts: 'PASSED',
  'TestUnit::test_unit_parts': 'FAILED',
  test_flaky: 'PASSED',
});
const pytest = { ...pytestNamed, 'test_known.py::test_skipped': 'SKIPPED' } as const;
const unittest = named('test_known.', {
  'Known.test_adds': 'PASSED',
  'Known.test_documented_open': 'PASSED',
  'Known.test_errors': 'ERROR',
  'Known.test_fails': 'FAILED',
  'Known.test_fails_open': 'FAILED',
  'Known.test_known_bug': 'XFAIL',
  'Known.test_mended': 'XPASS',
  'Known.test_parts': 'FAILED',
  'Known.test_parts_errors': 'ERROR',
  'Known.test_prints': 'PASSED',
  'Known.test_prints_dashes': 'PASSED',
  'Known.test_prints_open': 'PASSED',
  'Known.test_prints_two_lines_open': 'PASSED',
  'Known.test_skipped': 'SKIPPED',
  'Known.test_skips_open': 'SKIPPED',
  'Leaves.test_one': 'PASSED',
  'Next.test_two': 'PASSED',
  'Unloaded.setUpClass': 'ERROR',
});
const javascript = {
  adds: 'PASSED',
  fails: 'FAILED',
  errors: 'FAILED',
  'is skipped': 'SKIPPED',
  prints: 'PASSED',
  'prints open': 'PASSED',
  'fails open': 'FAILED',
} as const;
const cases = { 'case 1': 'PASSED', 'case 2': 'FAILED' } as const;
const jest = {
  ...named('known › ', javascript),
  ...named('known › deep › ', cases),
  'on top': 'PASSED',
  'is next': 'PASSED',
} as const;
const { 'is skipped': skippedInVitest, ...shownByVitest } = javascript;
const vitest = {
  ...named('known.test.ts > known > ', javascript),
  ...named('known.test.ts > known > deep > ', cases),
  'known.test.ts > on top': 'PASSED',
} as const;
/** Vitest 1 does not show a skipped test without its suite. */
const oldVitest = {
  ...named('known.test.ts > known > ', shownByVitest),
  ...named('known.test.ts > known > deep > ', cases),
  'known.test.ts > on top': 'PASSED',
} as const;
/** The default report names failures in full, below. */
const defaultVitest = named('known.test.ts > known > ', {
  fails: 'FAILED',
  errors: 'FAILED',
  'fails open': 'FAILED',
  'deep > case 2': 'FAILED',
});
const node = {
  ...named('known > ', javascript),
  known: 'FAILED',
  'parts > one': 'PASSED',
  'parts > two': 'FAILED',
  parts: 'FAILED',
  'on top': 'PASSED',
  last: 'PASSED',
} as const;
const go = {
  ...named('example.com/known.Test', {
    Adds: 'PASSED',
    Fails: 'FAILED',
    Skipped: 'SKIPPED',
    Prints: 'PASSED',
    PrintsOpen: 'PASSED',
    FailsOpen: 'FAILED',
    SkipsOpen: 'SKIPPED',
    Parts: 'FAILED',
    'Parts/case_1': 'PASSED',
    'Parts/case_2': 'FAILED',
    GoodParts: 'PASSED',
    'GoodParts/a': 'PASSED',
    'GoodParts/b/c': 'PASSED',
    Last: 'PASSED',
  }),
  'example.com/known/crash.TestBefore': 'PASSED',
  'example.com/known/crash.TestCrashes': 'FAILED',
  'example.com/known/exits.TestBefore': 'PASSED',
  'example.com/known/exits.TestExits': 'ERROR',
} as const;
const cargo = named('tests::', {
  adds: 'PASSED',
  fails: 'FAILED',
  is_ignored: 'SKIPPED',
  panics: 'PASSED',
  prints: 'PASSED',
  prints_open: 'PASSED',
  prints_open_lines: 'PASSED',
  fails_open: 'FAILED',
  'deep::one': 'PASSED',
});
const ctest = {
  adds: 'PASSED',
  fails: 'FAILED',
  is_skipped: 'SKIPPED',
  is_disabled: 'SKIPPED',
  is_not_found: 'FAILED',
  prints: 'PASSED',
  prints_open: 'PASSED',
  fails_open: 'FAILED',
  crashes: 'FAILED',
  hangs: 'FAILED',
  'has a name .. with dots': 'PASSED',
} as const;
const googletest = {
  'Known.Adds': 'PASSED',
  'Known.Fails': 'FAILED',
  'Known.Errors': 'FAILED',
  'Known.Skipped': 'SKIPPED',
  'Known.Prints': 'PASSED',
  'Known.PrintsOpen': 'PASSED',
  'Known.FailsOpen': 'FAILED',
  'Leaves.One': 'PASSED',
  'Next.Two': 'PASSED',
  'All/Cases.Is/0': 'PASSED',
  'All/Cases.Is/1': 'FAILED',
  'Zcrash.Before': 'PASSED',
  'Zcrash.Crashes': 'PASSED',
  'Zcrash.After': 'PASSED',
} as const;
const maven = {
  'known.KnownTest': 'ERROR',
  'known.KnownTest.fails': 'FAILED',
  'known.KnownTest.errors': 'ERROR',
  'known.KnownTest.failsOpen': 'FAILED',
  'known.PrintsTest': 'PASSED',
  'known.SkippedTest': 'SKIPPED',
  'known.CrashTest': 'PASSED',
} as const;
const gradle = {
  ...named('known.KnownTest > ', {
    adds: 'PASSED',
    fails: 'FAILED',
    errors: 'FAILED',
    isSkipped: 'SKIPPED',
    printsOpen: 'PASSED',
    failsOpen: 'FAILED',
    warns: 'PASSED',
  }),
  'known.PrintsTest > prints': 'PASSED',
  'known.SkippedTest > isSkipped': 'SKIPPED',
} as const;
const phpunit = {
  ...named('Known > ', {
    Adds: 'PASSED',
    Fails: 'FAILED',
    Errors: 'FAILED',
    'Is skipped': 'SKIPPED',
    'Is incomplete': 'SKIPPED',
    'Is risky': 'PASSED',
    Prints: 'PASSED',
    'Prints open': 'PASSED',
    'Fails open': 'FAILED',
    'Case with data set "one"': 'PASSED',
    'Case with data set "two (2)"': 'FAILED',
  }),
  'Other > One': 'PASSED',
} as const;
const rspecFailed = named('Known ', {
  fails: 'FAILED',
  errors: 'FAILED',
  'is mended': 'FAILED', // prose-ok: the title of a recorded test
  'fails open': 'FAILED',
  '#deep with cases case 2': 'FAILED',
});
const rspec = {
  ...rspecFailed,
  ...named('Known ', {
    adds: 'PASSED',
    'is skipped': 'SKIPPED',
    'is pending': 'SKIPPED',
    'is not written': 'SKIPPED',
    prints: 'PASSED',
    'prints open': 'PASSED',
    '#deep last of deep': 'PASSED',
    '#deep with cases case 1': 'PASSED',
  }),
  'Integer is on top': 'PASSED',
} as const;

/** The logs that test/fixtures/logs/known/record.sh records, and the statuses that a reader of the tests expects. */
export const knownLogs: readonly KnownLog[] = [
  { logs: ['pytest-8', 'pytest-9'], parser: 'pytest', tests: pytestNamed },
  {
    logs: ['8', '9'].flatMap((major) => ['verbose', 'open', 'xdist'].map((mode) => `pytest-${major}-${mode}`)),
    parser: 'pytest',
    tests: pytest,
  },
  {
    logs: ['pytest-8-crash', 'pytest-9-crash'],
    parser: 'pytest',
    tests: { 'test_crash.py::test_before': 'PASSED', 'test_crash.py::test_crashes': 'ERROR' },
    crashed: true,
  },
  {
    logs: ['pytest-8-xdist-crash', 'pytest-9-xdist-crash'],
    parser: 'pytest',
    tests: named('test_crash.py::test_', { before: 'PASSED', crashes: 'FAILED', after: 'PASSED' }),
  },
  {
    logs: ['written-pytest-subtests'],
    parser: 'pytest',
    tests: named('tests/test_s.py::', { test_good: 'PASSED', test_sub: 'FAILED', 'test_cases[a - b]': 'FAILED' }),
  },
  { logs: ['unittest'], parser: 'unittest', tests: unittest },
  {
    logs: ['unittest-crash'],
    parser: 'unittest',
    tests: named('test_crash.Crash.test_', { a_before: 'PASSED', b_crashes: 'ERROR' }),
    crashed: true,
  },
  { logs: ['jest', 'jest-old'], parser: 'jest', tests: jest },
  { logs: ['jest-crash'], parser: 'jest', tests: {} },
  {
    logs: ['mocha'],
    parser: 'mocha',
    tests: { ...named('known ', javascript), ...named('known deep ', cases) },
  },
  { logs: ['mocha-crash'], parser: 'mocha', tests: { 'crash before': 'PASSED' } },
  { logs: ['vitest'], parser: 'vitest', tests: vitest },
  { logs: ['vitest-old'], parser: 'vitest', tests: oldVitest },
  { logs: ['vitest-default'], parser: 'vitest', tests: defaultVitest },
  { logs: ['vitest-crash'], parser: 'vitest', tests: {} },
  { logs: ['node-tap'], parser: 'tap', tests: node },
  { logs: ['node-tap-alone'], parser: 'tap', tests: node, printed: ['fails'] },
  { logs: ['node-spec', 'node-spec-alone'], parser: 'node-spec', tests: node },
  { logs: ['node-tap-crash'], parser: 'tap', tests: { 'crash.test.mjs': 'FAILED' } },
  { logs: ['node-spec-crash'], parser: 'node-spec', tests: { 'crash.test.mjs': 'FAILED' } },
  { logs: ['go-text'], parser: 'go-text', tests: go },
  { logs: ['go-json'], parser: 'go-json', tests: go },
  { logs: ['cargo', 'cargo-open'], parser: 'cargo', tests: cargo },
  {
    logs: ['cargo-crash'],
    parser: 'cargo',
    tests: { 'tests::a_before': 'PASSED', 'tests::b_crashes': 'ERROR' },
    crashed: true,
  },
  { logs: ['ctest', 'ctest-verbose'], parser: 'ctest', tests: ctest },
  { logs: ['googletest', 'googletest-untimed'], parser: 'googletest', tests: googletest },
  {
    logs: ['googletest-crash'],
    parser: 'googletest',
    tests: { 'Zcrash.Before': 'PASSED', 'Zcrash.Crashes': 'ERROR' },
    crashed: true,
  },
  { logs: ['2.12.4', '2.22.2', '3.5.2'].map((version) => `maven-${version}`), parser: 'maven', tests: maven },
  { logs: ['maven-crash'], parser: 'maven', tests: {}, crashed: true },
  { logs: ['gradle', 'gradle-streams'], parser: 'gradle', tests: gradle },
  {
    logs: ['written-gradle'],
    parser: 'gradle',
    tests: named('x.Graph > test', { A: 'PASSED', B: 'PASSED', C: 'FAILED', D: 'FAILED', E: 'SKIPPED' }),
  },
  { logs: ['phpunit'], parser: 'phpunit', tests: phpunit },
  { logs: ['phpunit-crash'], parser: 'phpunit', tests: { 'Crash > Before': 'PASSED' } },
  { logs: ['rspec'], parser: 'rspec', tests: rspec },
  { logs: ['rspec-progress'], parser: 'rspec', tests: rspecFailed },
  { logs: ['rspec-crash'], parser: 'rspec', tests: { 'Crash before': 'PASSED' }, crashed: true },
];

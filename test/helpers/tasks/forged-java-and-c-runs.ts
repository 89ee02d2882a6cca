/** The report of a run in which the test `failed` failed, and lines that would make it seem to have passed. */
export interface Run {
  readonly failed: string;
  /** Whether the report identifies a test only by its position: a line in between shifts it, so the test may be missing. */
  readonly byPosition?: true;
  /** The runner's lines. Each entry is written at once. */
  readonly written: readonly string[];
  /** Lines that a test may print in between. */
  readonly forged: readonly string[];
}

const catchRule = '-'.repeat(79);
const catchBlock = (test: string): string =>
  [catchRule, test, '  deep', catchRule, 'a.cpp:7', '.'.repeat(79), '', 'a.cpp:7: FAILED:', '  CHECK( 1 == 2 )'].join(
    '\n',
  );
const gradleRun: Run = {
  failed: 'x.T > fails()',
  written: ['> Task :test', 'x.T > adds() PASSED', '', 'x.T > fails() FAILED', '    no', '> Task :test FAILED'],
  forged: [
    'x.T > fails() PASSED',
    'x.T > fails() SKIPPED',
    'x.T > fails()',
    'PASSED',
    'x.Z > zzz() FAILED',
    '> Task :test',
  ],
};

const mochaReport = (outcome: 'passes' | 'failures'): string => {
  const [adds, fails] = ['adds', 'fails'].map((title) => ({ title, fullTitle: `s ${title}`, file: '/a.test.js' }));
  const tests = [adds, fails];
  const passes = outcome === 'passes' ? tests : [adds];
  const failures = outcome === 'passes' ? [] : [fails];
  return JSON.stringify({ stats: { tests: 2 }, tests, pending: [], failures, passes }, null, 2);
};
/** Mocha writes its report at once. */
const mochaJsonRun = (failed: string): Run => ({
  failed,
  written: ['yarn run mocha --reporter json', mochaReport('failures'), 'error Command failed with exit code 1.'],
  forged: [mochaReport('passes'), '    ✔ fails', '{', '  "stats": {', '}', '  "passes": [', '  1 passing (1ms)'],
});
/** The runs of runners for Java, Ruby, C and C++. */
export const javaAndCRuns = {
  'jest-files': [
    {
      failed: 'a.test.js:fails',
      written: [
        'PASS b.test.js\n  ✓ adds (1 ms)\n',
        'FAIL a.test.js\n  s\n    ✓ adds (1 ms)\n    ✕ fails (2 ms)\n',
        '  ● s › fails\n\n    no\n',
      ],
      forged: ['PASS a.test.js', '  ✓ fails (1 ms)', '    ✓ fails', 'FAIL zzz.test.js'],
    },
  ],
  'maven-builds': [
    {
      failed: 'x.FailsTest#fails',
      written: [
        '+ mvn test -Dtest=x.FailsTest#fails',
        '[ERROR] x.FailsTest.fails -- Time elapsed: 0.1 s <<< FAILURE!',
        '[INFO] BUILD FAILURE',
      ],
      forged: ['[INFO] BUILD SUCCESS', '+ mvn test -Dtest=x.Z#zzz', 'x.FailsTest.fails -- Time elapsed: 0.1 s'],
    },
  ],
  'mocha-json': [mochaJsonRun('s fails')],
  'mocha-json-files': [mochaJsonRun('/a.test.js:s fails')],
  'mocha-titles': [
    {
      failed: 'fails',
      written: ['  s', '    ✔ adds', '    1) fails', '  1 passing (1ms)', '  1) s\n       fails:\n     Error: no'],
      forged: ['    ✔ fails', '  ✔ fails (2ms)', '    - fails', '    2) zzz'],
    },
  ],
  'workspace-titles': [
    {
      failed: 'src/b.test.ts',
      written: [
        ' ✓ src/a.test.ts  (5 tests) 12ms',
        ' ❯ src/b.test.ts  (2 tests | 1 failed) 8ms',
        '   × suite > fails 3ms',
        ' FAIL  src/b.test.ts > suite > fails',
      ],
      forged: [' ✓ src/b.test.ts (2 tests) 5ms', ' ↓ src/b.test.ts (2 tests)', ' ❯ src/z.test.ts (1 test) 5ms'],
    },
    {
      failed: 'fails',
      written: ['FAIL src/a.test.ts\n  s\n    ✓ adds (1 ms)\n    ✕ fails (2 ms)\n', '  ● s › fails\n\n    no\n'],
      forged: ['PASS src/a.test.ts', '    ✓ fails (1 ms)', '  ✓ fails', 'FAIL zzz.test.ts'],
    },
  ],
  rspec: [
    {
      failed: 's fails',
      byPosition: true,
      written: [
        '',
        's',
        '  adds',
        '  fails (FAILED - 1)',
        '',
        'Failures:',
        '  1) s fails',
        '2 examples, 1 failure',
        'Failed examples:',
        'rspec ./spec/s_spec.rb:3 # s fails',
      ],
      forged: [
        's',
        '  fails',
        'text  fails',
        '    deeper',
        '',
        'Failures:',
        '  zzz (FAILED - 2)',
        '1 example, 0 failures',
      ],
    },
  ],
  ponytest: [
    {
      failed: 'x/B',
      written: ['---- Passed: x/A', '**** FAILED: x/B'],
      forged: ['---- Passed: x/B', '[       OK ] x/B (0 ms)', '**** FAILED: x/Z'],
    },
  ],
  redis: [
    {
      failed: 'b',
      written: ['[ok]: a (1 ms)', '[err]: b in tests/unit/x.tcl', 'no'],
      forged: ['[ok]: b', '[skip]: b', '[ok]: b in tests/unit/x.tcl', '[err]: zzz in x'],
    },
  ],
  'tap-lines': [
    {
      failed: '- b',
      written: ['TAP version 13', 'ok 1 - a', 'not ok 2 - b', '1..2'],
      forged: ['ok 2 - b', '  ok 2 - b', 'ok 2 - b # SKIP', 'not ok 3 - zzz'],
    },
  ],
  automake: [
    {
      failed: 'fails.sh',
      written: ['PASS: adds.sh', 'FAIL: fails.sh', '# TOTAL: 2', '# PASS:  1', '# FAIL:  1'],
      forged: ['PASS: fails.sh', 'XFAIL: fails.sh', 'FAIL: zzz.sh', '# TOTAL: 1'],
    },
  ],
  catch2: [
    {
      failed: 'fails',
      written: [
        catchBlock('fails'),
        '0.000 s: deep',
        '0.000 s: fails',
        '0.000 s: adds',
        'test cases: 2 | 1 passed | 1 failed',
      ],
      forged: [
        catchRule,
        'other',
        '.'.repeat(79),
        '',
        '0.000 s: fails',
        'a.cpp:7: PASSED:',
        'a.cpp:7: FAILED:',
        catchBlock('zzz'),
      ],
    },
  ],
  ctest: [
    {
      failed: 'fails',
      written: [
        '1/2 Test #1: adds .............   Passed    0.01 sec',
        '2/2 Test #2: fails ............***Failed    0.01 sec',
        '50% tests passed, 1 tests failed out of 2',
        'The following tests FAILED:\n\t  2 - fails (Failed)',
      ],
      forged: [
        '2/2 Test #2: fails ............   Passed    0.01 sec',
        '2/2 Test #2: fails ............***Skipped   0.01 sec',
        '2/2 Test #2: zzz ..............***Failed    0.01 sec',
        '100% tests passed, 0 tests failed out of 2',
        'The following tests FAILED:',
      ],
    },
  ],
  googletest: [
    {
      failed: 'T.Fails',
      written: [
        '[==========] Running 2 tests from 1 test suite.',
        '[ RUN      ] T.Adds\n[       OK ] T.Adds (0 ms)',
        '[ RUN      ] T.Fails',
        'said[  FAILED  ] T.Fails, where GetParam() = 3 (0 ms)',
        '[==========] 2 tests from 1 test suite ran. (0 ms total)',
        '[  FAILED  ] T.Fails, where GetParam() = 3',
      ],
      forged: [
        '[       OK ] T.Fails (0 ms)',
        '[  SKIPPED ] T.Fails (0 ms)',
        '[ RUN      ] T.Zzz',
        '[  FAILED  ] T.Zzz (0 ms)',
        '[==========] Running 1 tests from 1 test suite.',
        '[==========] 1 tests from 1 test suite ran. (0 ms total)',
      ],
    },
  ],
  gradle: [gradleRun],
  'gradle-lines': [gradleRun],
  'gradle-tasks': [gradleRun, { ...gradleRun, failed: 'test' }],
  maven: [
    {
      failed: 'x.FailsTest',
      written: [
        'Running x.AddsTest\nTests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec',
        'Running x.FailsTest',
        'Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE!',
        'fails(x.FailsTest)  Time elapsed: 0.06 sec  <<< FAILURE!',
        'Tests run: 3, Failures: 1, Errors: 0, Skipped: 0',
      ],
      forged: [
        'Running x.FailsTest',
        'Running x.ZzzTest',
        'Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec',
        '[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in x.FailsTest',
        'x.FailsTest -- Time elapsed: 0.1 s',
      ],
    },
    {
      failed: 'x.FailsTest.fails',
      written: [
        '[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.5 s <<< FAILURE! -- in x.FailsTest',
        '[ERROR] x.FailsTest.adds -- Time elapsed: 0.01 s',
        '[ERROR] x.FailsTest.fails -- Time elapsed: 0.01 s <<< FAILURE!',
      ],
      forged: ['x.FailsTest.fails -- Time elapsed: 0.1 s', 'fails(x.FailsTest)  Time elapsed: 0.1 sec', 'Running x.Z'],
    },
  ],
} as const satisfies Record<string, readonly Run[]>;

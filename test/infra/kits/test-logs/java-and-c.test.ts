import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { problemsIn, testsIn } from '../../../helpers/tasks/parsed-logs.ts';

/** Excerpts of real logs of surefire 3.2, CMake 3.25, GoogleTest 1.12, Catch2 2.13 and automake 1.16. */
describe('Maven', () => {
  const log = `[INFO] Running com.x.FailsTest
Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in com.x.FailsTest
[ERROR] Tests run: 3, Failures: 1, Errors: 1, Skipped: 0, Time elapsed: 0.243 s <<< FAILURE! -- in com.x.FailsTest
[ERROR] com.x.FailsTest.breaks -- Time elapsed: 0.082 s <<< ERROR!
java.lang.IllegalStateException: boom
\tat com.x.FailsTest.breaks(FailsTest.java:2)
[ERROR] com.x.FailsTest.fails -- Time elapsed: 0.019 s <<< FAILURE!
[ERROR] com.x.FailsTest.works -- Time elapsed: 0.002 s
[INFO] Running com.x.AddsTest
[INFO] Running com.x.AddsTest$Inner
[WARNING] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.041 s -- in com.x.AddsTest$Inner
[INFO] Tests run: 0, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.138 s -- in com.x.AddsTest
[INFO] Running com.x.SkippedTest
[WARNING] Tests run: 1, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0 s -- in com.x.SkippedTest
[INFO] Results:
[ERROR]   FailsTest.fails:2 expected: <3> but was: <2>
[ERROR] Tests run: 7, Failures: 1, Errors: 1, Skipped: 2
[INFO] BUILD FAILURE
`;

  it('is read by classes, and by methods where it names them', () => {
    assert.deepEqual(testsIn('maven', log), {
      'com.x.FailsTest': 'ERROR',
      'com.x.FailsTest.breaks': 'ERROR',
      'com.x.FailsTest.fails': 'FAILED',
      'com.x.FailsTest.works': 'PASSED',
      'com.x.AddsTest$Inner': 'PASSED',
      'com.x.AddsTest': 'SKIPPED',
      'com.x.SkippedTest': 'SKIPPED',
    });
  });

  it('is read in the form of old versions, which name a class before its result', () => {
    const old = `Running com.x.AddsTest
Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 sec
Running com.x.FailsTest
Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE!
fails(com.x.FailsTest)  Time elapsed: 0.01 sec  <<< FAILURE!
`;
    assert.deepEqual(testsIn('maven', old), {
      'com.x.AddsTest': 'PASSED',
      'com.x.FailsTest': 'FAILED',
      'com.x.FailsTest.fails': 'FAILED',
    });
  });

  it('has a problem if the code does not compile, or the process of the tests dies', () => {
    const broken = '[ERROR] COMPILATION ERROR : \n[ERROR] The forked VM terminated without properly saying goodbye.\n';
    assert.deepEqual(problemsIn('maven', broken), [
      'collection-error: COMPILATION ERROR :',
      'crashed: The forked VM terminated without properly saying goodbye.',
    ]);
  });
});

describe('Gradle', () => {
  const log = `> Task :core:compileJava UP-TO-DATE
> Task :core:processResources NO-SOURCE
> Task :core:test

com.x.FooTest > adds() PASSED
com.x.FooTest > Inner > [1] a, b PASSED
com.x.FooTest > fails() FAILED
    org.opentest4j.AssertionFailedError at FooTest.java:9
com.x.FooTest > later() SKIPPED
> Task :core:test FAILED
> Task :app:compileJava FAILED
`;
  const tests = {
    'com.x.FooTest > adds()': 'PASSED',
    'com.x.FooTest > Inner > [1] a, b': 'PASSED',
    'com.x.FooTest > fails()': 'FAILED',
    'com.x.FooTest > later()': 'SKIPPED',
  };

  it('is read by its tests, and for Multi-SWE-bench by its tasks too', () => {
    assert.deepEqual(testsIn('gradle', log), tests);
    assert.deepEqual(problemsIn('gradle', log), ['collection-error: app:compileJava']);
    assert.deepEqual(testsIn('gradle-tasks', log), {
      'core:compileJava': 'PASSED',
      'core:processResources': 'SKIPPED',
      'core:test': 'FAILED',
      ...tests,
      'app:compileJava': 'FAILED',
    });
  });
});

describe('CTest', () => {
  it('is read with the output of tests and the list of failures', () => {
    const log = `    Start 3: fails
 1/9 Test #1: adds .............................   Passed    0.01 sec
 2/9 Test #2: two words ........................***Not Run   0.00 sec
 3/9 Test #3: fails ............................***Failed    0.01 sec
3/9 Test  #1: printed ....   Passed    0.01 sec
 4/9 Test #4: crashes ..........................***Exception: SegFault  0.00 sec
 6/9 Test #7: skips ............................***Skipped   0.00 sec
 7/9 Test #8: disabled .........................***Not Run (Disabled)   0.00 sec
 8/9 Test #9: expected-failure .................   Passed    0.00 sec
 9/9 Test #5: slow .............................***Timeout   1.01 sec

38% tests passed, 5 tests failed out of 8

The following tests did not run:
\t  7 - skips (Skipped)

The following tests FAILED:
\t  2 - two words (Not Run)
\t  3 - fails (Failed)
\t  4 - crashes (SEGFAULT)
\t  6 - missing (Not Run)
`;
    const { parsed, problems } = { parsed: testsIn('ctest', log), problems: problemsIn('ctest', log) };
    assert.deepEqual(parsed, {
      adds: 'PASSED',
      'two words': 'FAILED',
      fails: 'FAILED',
      printed: 'PASSED',
      crashes: 'FAILED',
      skips: 'SKIPPED',
      disabled: 'SKIPPED',
      'expected-failure': 'PASSED',
      slow: 'FAILED',
    });
    assert.deepEqual(problems, []);
    assert.deepEqual(problemsIn('ctest', '100% tests passed, 0 tests failed out of 2\n'), [
      'miscounted: 2 tests were to run, 0 reported',
    ]);
  });
});

describe('GoogleTest', () => {
  it('is read with parameters, colours, and output without a line end', () => {
    const log = `[==========] Running 5 tests from 2 test suites.
[ RUN      ] Calc.Fails
[       OK ] Calc.Fails (0 ms)
a.cpp:4: Failure
\u001b[0;31m[  FAILED  ] \u001b[mCalc.Fails (0 ms)
[ RUN      ] Calc.Skips
[  SKIPPED ] Calc.Skips (0 ms)
[ RUN      ] Calc.Prints
no line end[       OK ] Calc.Prints (0 ms)
[ DISABLED ] Calc.DISABLED_Later
[ RUN      ] All/P.Even/0
[       OK ] All/P.Even/0 (0 ms)
[ RUN      ] All/P.Even/1
[  FAILED  ] All/P.Even/1, where GetParam() = 3 (0 ms)
[==========] 5 tests from 2 test suites ran. (0 ms total)
[  PASSED  ] 2 tests.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Calc.Fails
[  FAILED  ] All/P.Even/1, where GetParam() = 3
`;
    assert.deepEqual(testsIn('googletest', log), {
      'Calc.Fails': 'FAILED',
      'Calc.Skips': 'SKIPPED',
      'Calc.Prints': 'PASSED',
      'All/P.Even/0': 'PASSED',
      'All/P.Even/1': 'FAILED',
    });
    assert.deepEqual(problemsIn('googletest', log), []);
  });

  it('has an error for the test that took its program down', () => {
    const log = '[==========] Running 2 tests from 1 test suite.\n[ RUN      ] T.Dies\nSegmentation fault\n';
    assert.deepEqual(testsIn('googletest', log), { 'T.Dies': 'ERROR' });
    assert.deepEqual(problemsIn('googletest', log), ['crashed: a test program ended after 0 of its 2 tests']);
  });
});

describe('Catch2', () => {
  const rule = '-'.repeat(79);
  const block = (title: string): string => `${rule}\n${title}\n${rule}\na.cpp:6\n${'.'.repeat(79)}\n\n`;
  const long =
    'Scenario: a scenario that has a long name, longer than the eighty columns of\n          the console\n      Given: x';

  it('is read by the durations of test cases, and by blocks of failures', () => {
    const log = `0.000 s: inner
0.000 s: adds two numbers
${block('fails\n  deep')}a.cpp:6: FAILED:
  REQUIRE( 2 == 3 )

0.000 s: deep
0.001 s: fails
${block(long)}a.cpp(9): FAILED:
due to unexpected exception with message:
  boom
${'='.repeat(79)}
test cases: 3 | 1 passed | 2 failed
`;
    assert.deepEqual(testsIn('catch2', log), {
      fails: 'FAILED',
      'Scenario: a scenario that has a long name, longer than the eighty columns of the console': 'FAILED',
      inner: 'PASSED',
      'adds two numbers': 'PASSED',
      deep: 'PASSED',
    });
  });

  it('has a problem, and no passes, with -s', () => {
    const log = `${block('adds')}a.cpp:6: PASSED:\n  CHECK( true )\n\n0.000 s: adds\n`;
    assert.deepEqual(testsIn('catch2', log), {});
    assert.match(problemsIn('catch2', log).join(), /malformed: the tests ran with -s/);
  });
});

describe('make check', () => {
  it('is read with its totals', () => {
    const log = `PASS: adds.sh
FAIL: fails.sh
SKIP: skips.sh
XFAIL: known.sh
XPASS: surprise.sh
ERROR: breaks.sh
PASS: t/tap.test 1 - described
# TOTAL: 7
# PASS:  2
`;
    assert.deepEqual(testsIn('automake', log), {
      'adds.sh': 'PASSED',
      'fails.sh': 'FAILED',
      'skips.sh': 'SKIPPED',
      'known.sh': 'XFAIL',
      'surprise.sh': 'XPASS',
      'breaks.sh': 'ERROR',
      't/tap.test 1 - described': 'PASSED',
    });
    assert.deepEqual(problemsIn('automake', log), []);
    assert.deepEqual(problemsIn('automake', 'PASS: a\n# TOTAL: 2\n'), ['miscounted: 2 tests were to run, 1 reported']);
  });
});

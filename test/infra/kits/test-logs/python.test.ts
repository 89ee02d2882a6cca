import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { problemsIn, testsIn } from '../../../helpers/tasks/parsed-logs.ts';

const rule = '='.repeat(70);

const log = `test_a (test_u.T.test_a)
Adds things. ... ok
test_b (test_u.T.test_b) ... FAIL
test_c (test_u.T.test_c) ... skipped 'no ... ok'
test_d (test_u.T.test_d) ... expected failure
test_e (test_u.T.test_e) ... unexpected success
test_f (test_u.T.test_f) ... hello
ok
test_g (test_u.T.test_g) ...${' '}
  test_g (test_u.T.test_g) (i=1) ... FAIL
test_h (test_u.Old) ... ok
test_i (test_u.T.test_i) ... ok
ERROR
setUpClass (test_u.U) ... ERROR
test_bad (unittest.loader._FailedTest.test_bad) ... ERROR

${rule}
ERROR: test_bad (unittest.loader._FailedTest.test_bad)
----------------------------------------------------------------------
ImportError: Failed to import test module: test_bad

${rule}
FAIL: test_b (test_u.T.test_b)
----------------------------------------------------------------------
AssertionError: None

----------------------------------------------------------------------
Ran 11 tests in 0.009s

FAILED (failures=2, errors=2, skipped=1, expected failures=1, unexpected successes=1)
`;

describe('unittest', () => {
  it('may have docstrings, sub-tests, and printed text between a name and its result', () => {
    assert.deepEqual(testsIn('unittest', log), {
      'test_u.T.test_a': 'PASSED',
      'test_u.T.test_b': 'FAILED',
      'test_u.T.test_c': 'SKIPPED',
      'test_u.T.test_d': 'XFAIL',
      'test_u.T.test_e': 'XPASS',
      'test_u.T.test_f': 'PASSED',
      'test_u.T.test_g': 'FAILED',
      'test_u.Old.test_h': 'PASSED',
      'test_u.T.test_i': 'PASSED',
      'test_u.U.setUpClass': 'ERROR',
    });
    assert.deepEqual(problemsIn('unittest', log).slice(0, 1), ['collection-error: test_bad']);
  });

  it('counts a failure although the test printed a passing line before it', () => {
    const forged = 'test_a (m.T.test_a) ... ok\nok\ntest_a (m.T.test_a) ... ok\nFAIL\n';
    const block = `${rule}\nFAIL: test_a (m.T.test_a)\n`;
    assert.deepEqual(testsIn('unittest', `${forged}${block}`), { 'm.T.test_a': 'FAILED' });
    assert.deepEqual(testsIn('unittest', 'test_a (m.T.test_a) ... \nok\nFAIL\n'), { 'm.T.test_a': 'FAILED' });
  });

  it('counts no test as failed because an error line stands before its own', () => {
    const noisy = 'ERROR: no such table\ntest_a (m.T.test_a) ... ok\nERROR: again\nAdds things. ... ok\n';
    assert.deepEqual(testsIn('unittest', noisy), { 'm.T.test_a': 'PASSED', 'Adds things.': 'PASSED' });
    assert.deepEqual(testsIn('django', noisy), { 'test_a (m.T.test_a)': 'PASSED', 'Adds things.': 'PASSED' });
  });

  it("spells Django's ids as its data set does", () => {
    const django = testsIn('django', log);
    assert.equal(django['Adds things.'], 'PASSED');
    assert.equal(django['test_b (test_u.T.test_b)'], 'FAILED');
    const noisy = `test_x (a.tests.T) ... Testing against Django installed in '/testbed/django'
System check identified no issues (0 silenced).
ok
  Applying sites.0001_initial... OK
`;
    assert.deepEqual(testsIn('django', noisy), { 'test_x (a.tests.T)': 'PASSED' });
  });
});

describe('sympy', () => {
  it('is read by its letters and the headings of failures', () => {
    const sympy = `============================= test process starts ==============================
sympy/core/tests/test_basic.py[7]
test_structure ok
test_equality f
test_slow s
test_old X
test_wrong F
test_error E
test_last ok                                                              [FAIL]

________________________________________________________________________________
______________ sympy/core/tests/test_basic.py:test_wrong _______________________
Traceback (most recent call last):
=== tests finished: 2 passed, 1 failed, 1 skipped, in 0.10 seconds ===
`;
    assert.deepEqual(testsIn('sympy', sympy), {
      test_structure: 'PASSED',
      test_equality: 'XFAIL',
      test_slow: 'SKIPPED',
      test_old: 'XPASS',
      test_wrong: 'FAILED',
      test_error: 'ERROR',
      test_last: 'PASSED',
    });
  });

  it('counts a failure although the test printed a passing line', () => {
    assert.deepEqual(testsIn('sympy', 'test_a \ntest_a ok\n F\n____ x/test_b.py:test_a ____\n'), { test_a: 'FAILED' });
  });
});

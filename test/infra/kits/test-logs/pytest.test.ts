import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { problemsIn, testsIn } from '../../../helpers/tasks/parsed-logs.ts';

const log = `============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0
collected 9 items

test_s.py .F..F.sxX                                                       [100%]

=================================== FAILURES ===================================
__________________________________ test_fail ___________________________________
    def test_fail():
>       assert 1 == 2, "a - b"
E       AssertionError: a - b
----------------------------- Captured stdout call -----------------------------
PASSED test_s.py::test_fail
=========================== short test summary info ============================
PASSED test_s.py::test_fail
PASSED test_s.py::test_never_ran
=============================== 2 passed in 0.01s ==============================
==================================== PASSES ====================================
__________________________________ test_pass ___________________________________
----------------------------- Captured stdout call -----------------------------
test_s.py::test_never_ran PASSED                                         [ 10%]
=========================== short test summary info ============================
PASSED test_s.py::test_pass
PASSED test_s.py::test_par[a b]
PASSED test_s.py::test_par[c - d]
PASSED test_s.py::test_par[/tmp/x/y.cfg]
PASSED test_s.py::test_teardown
SKIPPED [1] test_s.py:6: no
XFAIL test_s.py::test_xf - bug
XPASS test_s.py::test_xp - bug
ERROR test_s.py::test_teardown - RuntimeError: down
FAILED test_s.py::test_fail - AssertionError: a - b
FAILED test_s.py::test_par[[e] - f] - AssertionError: assert 'e' not in '[e] ...
==== 2 failed, 5 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 error in 0.19s =====
PASSED test_s.py::test_after_the_end
`;

describe('pytest -rA', () => {
  it('is read by its last summary alone: output of tests before and after it is ignored', () => {
    assert.deepEqual(testsIn('pytest', log), {
      'test_s.py::test_pass': 'PASSED',
      'test_s.py::test_par[a b]': 'PASSED',
      'test_s.py::test_par[c - d]': 'PASSED',
      'test_s.py::test_par[/tmp/x/y.cfg]': 'PASSED',
      'test_s.py::test_teardown': 'ERROR',
      'test_s.py::test_xf': 'XFAIL',
      'test_s.py::test_xp': 'XPASS',
      'test_s.py::test_fail': 'FAILED',
      'test_s.py::test_par[[e] - f]': 'FAILED',
    });
  });

  it('keeps parameters whole, whatever they contain', () => {
    const ids = [
      't.py::a[x]',
      't.py::a[-1-]',
      't.py::a[ - ]',
      't.py::a[[]',
      't.py::a[]] - b]',
      't.py::A::b[é [1] x-y]',
    ];
    for (const id of ids) {
      const passed = `=== short test summary info ===\nPASSED ${id}\n=== 1 passed in 0.10s ===\n`;
      assert.deepEqual(testsIn('pytest', passed), { [id]: 'PASSED' });
    }
    for (const id of ids.slice(0, 4)) {
      const failed = `=== short test summary info ===\nFAILED ${id} - assert [1] - 2 == [3]\n=== 1 failed in 0.10s ===\n`;
      assert.deepEqual(testsIn('pytest', failed), { [id]: 'FAILED' });
    }
  });

  it('has spellings for the lists of SWE-bench', () => {
    const options = testsIn('pytest-options', log);
    assert.equal(options['test_s.py::test_par[/y.cfg]'], 'PASSED');
    const mouse = '== short test summary info ==\nPASSED t.py::b[MouseButton.LEFT-x]\n== 1 passed in 1s ==';
    assert.deepEqual(testsIn('pytest-matplotlib', mouse), { 't.py::b[1-x]': 'PASSED' });
  });

  it('has problems for files that could not be collected, and for an interrupted run', () => {
    const broken = `==== ERRORS ====
____ ERROR collecting test_bad.py ____
==== short test summary info ====
ERROR test_bad.py - ModuleNotFoundError: No module named 'nope'
!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!
==== 1 error in 0.89s ====
`;
    assert.deepEqual(testsIn('pytest', broken), {});
    assert.deepEqual(problemsIn('pytest', broken), [
      "collection-error: test_bad.py - ModuleNotFoundError: No module named 'nope'",
      'crashed: Interrupted: 1 error during collection',
    ]);
  });

  it('ends its summary with -q too, where no rule closes it', () => {
    const quiet = '=== short test summary info ===\nPASSED t.py::a\n1 passed, 1 warning in 0.02s\nPASSED t.py::b\n';
    assert.deepEqual(testsIn('pytest', quiet), { 't.py::a': 'PASSED' });
  });
});

describe('pytest -v', () => {
  const verbose = `============================= test session starts ==============================
collecting ... collected 5 items

t.py::a PASSED                                                           [ 20%]
t.py::p[a b] FAILED                                                      [ 40%]
t.py::s SKIPPED (no reason)                                              [ 60%]
t.py::x XFAIL (bug)                                                      [ 80%]
[gw1] [ 90%] PASSED t.py::w
t.py::down PASSED                                                        [100%]
t.py::down ERROR                                                         [100%]

=================================== FAILURES ===================================
t.py::p[a b] PASSED                                                      [ 40%]
t.py::forged PASSED                                                      [ 40%]
=========================== short test summary info ============================
FAILED t.py::p[a b] - assert 0
=================== 1 failed, 2 passed, 1 skipped in 0.05s =====================
`;

  it('is read by its progress lines if the summary names failures alone', () => {
    assert.deepEqual(testsIn('pytest', verbose), {
      't.py::a': 'PASSED',
      't.py::p[a b]': 'FAILED',
      't.py::s': 'SKIPPED',
      't.py::x': 'XFAIL',
      't.py::w': 'PASSED',
      't.py::down': 'ERROR',
    });
  });

  it('adds nothing but skips to a summary that names passes', () => {
    const both = `t.py::forged PASSED [ 10%]
t.py::s SKIPPED (no) [ 20%]
=== short test summary info ===
PASSED t.py::a
=== 1 passed, 1 skipped in 0.05s ===
`;
    assert.deepEqual(testsIn('pytest', both), { 't.py::a': 'PASSED', 't.py::s': 'SKIPPED' });
  });
});

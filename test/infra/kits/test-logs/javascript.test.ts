import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { problemsIn, testsIn } from '../../../helpers/tasks/parsed-logs.ts';

const expected = {
  'suite > adds # one': 'PASSED',
  'suite > fails': 'FAILED',
  'suite > skips': 'SKIPPED',
  'suite > later': 'XPASS',
  'suite > known bug': 'XFAIL',
  'suite > inner > deep': 'PASSED',
  'suite > inner': 'PASSED',
  suite: 'FAILED',
  top: 'PASSED',
};

describe('node:test', () => {
  const tap = `TAP version 13
# ok 9 - printed
# Subtest: suite
    # Subtest: adds \\# one
    ok 1 - adds \\# one
      ---
      duration_ms: 8.5
      type: 'test'
      ...
    # Subtest: fails
    not ok 2 - fails
      ---
      failureType: 'testCodeFailure'
      error: |-
        x
            ok 3 - in a message
        ok 3 - in a message
      ...
    ok 3 - skips # SKIP
    ok 4 - later # TODO
    not ok 5 - known bug # TODO
    # Subtest: inner
        # Subtest: deep
        ok 1 - deep
        1..1
    ok 6 - inner
    1..6
not ok 1 - suite
  ---
  type: 'suite'
  ...
# Subtest: top
ok 2 - top
1..2
# tests 7
`;
  const spec = `printed
▶ suite
  ✔ adds # one (14.5ms)
  ✖ fails (2.1ms)
  ﹣ skips (1.1ms) # SKIP
  ✔ later (7.7ms) # TODO
  ⚠ known bug (0.3ms) # TODO
  ▶ inner
    ✔ deep (0.3ms)
  ✔ inner (0.6ms)
✖ suite (32.5ms)
✔ top (0.5ms)
ℹ tests 7
ℹ pass 2

✖ failing tests:

test at s.test.mjs:2:77
✖ fails (2.1ms)
  Error: x
`;

  it('has the same ids in TAP and in its own report', () => {
    assert.deepEqual(testsIn('tap', tap), expected);
    assert.deepEqual(testsIn('node-spec', spec), expected);
    assert.deepEqual(problemsIn('tap', tap), []);
  });
});

describe('TAP', () => {
  it('has a problem if its plan was not kept, or it bailed out', () => {
    assert.deepEqual(problemsIn('tap', '1..3\nok 1 - a\nBail out! no disk\n'), [
      'crashed: Bail out! no disk',
      'miscounted: the plan has 3 tests, 1 were reported',
    ]);
  });

  it('counts the worst of repeated results', () => {
    assert.deepEqual(testsIn('tap', 'ok 1 - a\nnot ok 1 - a\nok 2 - a\n1..3\n'), { a: 'FAILED' });
  });
});

describe('jest', () => {
  const log = `FAIL src/sum.test.js (5.1 s)
  sum
    ✓ adds (3 ms)
    ✕ carries (2 ms)
    ○ skipped subtracts
    ✎ todo divides
    of lists
      ✓ is empty
  ✓ stands alone

  ● sum › carries

    expect(received).toBe(expected)
  sum
    ✓ forged in a message

PASS src/other.test.js
  ✓ works

FAIL src/broken.test.js
  ● Test suite failed to run

    Cannot find module './nope'

Test Suites: 2 failed, 1 passed, 3 total
`;

  it('is read by the tree under each file', () => {
    assert.deepEqual(testsIn('jest', log), {
      'sum › adds': 'PASSED',
      'sum › carries': 'FAILED',
      'sum › subtracts': 'SKIPPED',
      'sum › divides': 'SKIPPED',
      'sum › of lists › is empty': 'PASSED',
      'stands alone': 'PASSED',
      works: 'PASSED',
    });
    assert.deepEqual(problemsIn('jest', log), ['collection-error: src/broken.test.js']);
  });

  it('has a spelling for SWE-bench: titles alone', () => {
    const titles = testsIn('jest-titles', log);
    assert.deepEqual([titles.adds, titles.carries, titles['is empty']], ['PASSED', 'FAILED', 'PASSED']);
  });
});

describe('vitest', () => {
  it('is read by lines with the full path to a test', () => {
    const log = ` RUN  v3.0.5 /app

 ✓ src/a.test.ts > sum > adds 2ms
 × src/a.test.ts > sum > carries 5ms
   → expected 1 to be 2
 ↓ src/a.test.ts > sum > skipped one [skipped]
 ✓ src/a.test.ts > sum > flaky (retry x2) 12ms
 ✓ src/b.test.ts (3 tests) 4ms

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯
 FAIL  src/c.test.ts [ src/c.test.ts ]
 FAIL  src/a.test.ts > sum > carries
`;
    assert.deepEqual(testsIn('vitest', log), {
      'src/a.test.ts > sum > adds': 'PASSED',
      'src/a.test.ts > sum > carries': 'FAILED',
      'src/a.test.ts > sum > skipped one': 'SKIPPED',
      'src/a.test.ts > sum > flaky': 'PASSED',
    });
    assert.deepEqual(problemsIn('vitest', log), ['collection-error: src/c.test.ts [ src/c.test.ts ]']);
  });
});

describe('mocha', () => {
  it('is read by its tree, up to the totals; a printed tick shifts no other test', () => {
    const log = `
  sum
  ✓ printed
    ✔ adds (5ms)
    1) carries
    - subtracts
    of lists
      ✓ is empty

  2 passing (5ms)
  1 pending
  1 failing

  1) sum
       carries:
     ✓ forged in a message
`;
    assert.deepEqual(testsIn('mocha', log), {
      printed: 'PASSED',
      'sum adds': 'PASSED',
      'sum carries': 'FAILED',
      'sum subtracts': 'SKIPPED',
      'sum of lists is empty': 'PASSED',
    });
  });
});

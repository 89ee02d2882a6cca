import type { LogParserName } from '../../../infra/kits/test-logs/index.ts';
import { javaAndCRuns, type Run } from './forged-java-and-c-runs.ts';

const rule = '='.repeat(70);
const goFailure = ['=== RUN   B', '--- FAIL: B (0.00s)', 'FAIL', 'FAIL\tp\t0.01s'];
const goForged = [
  '=== RUN   B',
  '--- PASS: B (0.00s)',
  'ok  \tz\t0.01s',
  'ok  \tp\t0.01s',
  'FAIL\tz\t0.01s',
  'panic: x',
];
const goEvents = ['run', 'fail'].map((Action) => JSON.stringify({ Action, Package: 'p', Test: 'B' }));
const goPasses = ['run', 'pass'].map((Action) => JSON.stringify({ Action, Package: 'p', Test: 'B' }));
export const pytestWritten = [
  '== test session starts ==',
  't.py::a PASSED [ 50%]',
  't.py::b FAILED [100%]',
  '== FAILURES ==',
  '== short test summary info ==',
  'PASSED t.py::a',
  'FAILED t.py::b - no',
  '= 1 failed, 1 passed in 62.10s (0:01:02) =',
];
const pytestForged = [
  'PASSED t.py::b',
  't.py::b PASSED [ 50%]',
  'FAILED z.py::z - no',
  'FAILED t.py::a - no',
  '== short test summary info ==',
  '= 1 passed in 0.1s =',
  '1 passed in 0.1s',
  '== PASSES ==',
  '== test session starts ==',
  '!! Interrupted !!',
];
const jestTop: Run = {
  failed: 'fails',
  written: ['FAIL a.test.js', '  ✓ adds (3 ms)', '  ✕ fails', '', '  ● fails', '', '    no'],
  forged: ['PASS a.test.js', '  suite', `  ${'x'.repeat(2100)}`, '  ✓ fails', '  ✕ zzz', '  ● zzz'],
};
const jestRun = (failed: string): Run => ({
  failed,
  written: ['FAIL a.test.js', '  suite', '    ✓ adds (3 ms)', '    ✕ fails', '', '  ● suite › fails', '', '    no'],
  forged: [
    'PASS a.test.js',
    'FAIL z.test.js',
    '  suite',
    '  other',
    '    ✓ fails',
    '    ✕ zzz',
    '',
    '  ● other › zzz',
    '●',
  ],
});
const unittestRun = (failed: string, written: readonly string[]): Run => ({
  failed,
  written: [
    'test_a (m.T.test_a) ... ok',
    ...written,
    rule,
    'FAIL: test_b (m.T.test_b)\nSays so.',
    '-'.repeat(70),
    'FAILED (failures=1)',
  ],
  forged: [
    'test_b (m.T.test_b) ... ok',
    'test_b (m.T.test_b)',
    'test_b (m.T.test_b) ... ',
    'Says so. ... ok',
    'Says so. ... ',
    'test_z (m.T.test_z) ... ',
    'test_z (m.T.test_z) ... FAIL',
    'ok',
    rule,
    '-'.repeat(70),
  ],
});
const plainTest = ['test_b (m.T.test_b) ... FAIL'];
const describedTest = ['test_b (m.T.test_b)', 'Says so. ... ', 'FAIL'];

const vitestRun: Run = {
  failed: 'a.ts > suite > fails',
  written: [' ✓ a.ts > suite > adds 2ms', ' × a.ts > suite > fails 5ms', ' FAIL  a.ts > suite > fails'],
  forged: [' ✓ a.ts > suite > fails 1ms', ' ↓ a.ts > suite > fails [skipped]', ' × a.ts > suite > zzz 5ms'],
};

export const runs: Readonly<Record<LogParserName, readonly Run[]>> = {
  ...javaAndCRuns,
  'ctest-lower': javaAndCRuns.ctest,
  'jest-plain-files': javaAndCRuns['jest-files'],
  'redis-plain-titles': javaAndCRuns.redis,
  bats: [
    {
      failed: 'fails',
      written: ['1..2', 'ok 1 adds', 'not ok 2 fails', '# (in test file x.bats, line 3)'],
      forged: [
        '1..1',
        'ok 2 fails',
        ' ✓ fails',
        ' ✗ zzz',
        'not ok 3 zzz',
        ' ---',
        '  ...',
        '# Subtest: x',
        'Bail out!',
      ],
    },
    {
      failed: 'fails',
      written: ['x.bats', ' ✓ adds', ' ✗ fails', '   (in test file x.bats, line 3)', '2 tests, 1 failure'],
      forged: ['1..1', 'ok 2 fails', ' ✓ fails', ' ✗ zzz', 'not ok 3 zzz', ' ---', '  ...', '\u001b[1G ✓ fails'],
    },
  ],
  cargo: [
    {
      failed: 't::b',
      written: [
        'running 2 tests',
        'test t::a ... ok',
        'test t::b ... ',
        'FAILED',
        'failures:',
        '---- t::b stdout ----',
        'failures:',
        '    t::b',
        'test result: FAILED. 1 passed; 1 failed',
      ],
      forged: [
        'running 1 test',
        'test t::b ... ok',
        'test t::z ... ',
        'test t::z ... FAILED',
        'ok',
        'failures:',
        'successes:',
        'test result: ok. 1 passed; 0 failed',
      ],
    },
  ],
  django: [unittestRun('test_b (m.T.test_b)', plainTest), unittestRun('Says so.', describedTest)],
  unittest: [unittestRun('m.T.test_b', plainTest), unittestRun('m.T.test_b', describedTest)],
  'go-json': [{ failed: 'p.B', written: goEvents, forged: goPasses }],
  'go-json-names': [{ failed: 'B', written: goEvents, forged: goPasses }],
  'go-names': [{ failed: 'B', written: goFailure, forged: goForged }],
  'go-parents': [{ failed: 'B', written: goFailure, forged: goForged }],
  'go-text': [{ failed: 'p.B', byPosition: true, written: goFailure, forged: goForged }],
  jest: [jestRun('suite › fails'), jestTop],
  'jest-titles': [jestRun('fails'), jestTop],
  junit: [
    {
      failed: 'c.b',
      byPosition: true,
      written: [
        '<?xml version="1.0"?>\n<testsuite name="c"><testcase classname="c" name="a"/>\n<testcase classname="c" name="b">\n<error/></testcase></testsuite>',
      ],
      forged: [
        '<testsuite><testcase classname="c" name="b"/></testsuite>',
        '<testsuite><!--',
        '--></testsuite>',
        '<testsuite><testcase name="z"><system-out><![CDATA[',
        ']]></system-out></testcase></testsuite>',
      ],
    },
  ],
  mocha: [
    {
      failed: 'suite inner fails',
      written: [
        '',
        '  suite',
        '    ✔ adds',
        '    inner',
        '      1) fails',
        '',
        '  1 passing (1ms)',
        '  1 failing',
        '',
        '  1) suite\n       inner\n         fails:\n     Error: no',
      ],
      forged: [
        '  suite',
        '    inner',
        '  other',
        '    other',
        '      ✔ fails',
        '      1) zzz',
        '  1) zzz',
        '  2 passing (1ms)',
        '',
      ],
    },
    {
      failed: 'fails',
      written: ['  1) fails', '', '  0 passing (1ms)', '  1 failing', '', '  1) fails:\n     Error: no'],
      forged: ['  ✔ fails', '  suite', '  1 passing (1ms)', '    1) zzz'],
    },
  ],
  'node-spec': [
    {
      failed: 'suite > inner > fails',
      byPosition: true,
      written: [
        '▶ suite',
        '  ▶ inner',
        '    ✔ adds (1ms)',
        '    ✖ fails (1ms)',
        '  ✖ inner (2ms)',
        '✖ suite (2ms)',
        'ℹ fail 1',
        '✖ failing tests:',
        'test at s.test.mjs:2:77',
        '✖ fails (2.1ms)',
      ],
      forged: [
        '▶ suite',
        '  ▶ inner',
        '▶ other',
        '  ▶ other',
        '    ✔ fails (1ms)',
        '  ✔ inner (1ms)',
        '✔ suite (1ms)',
        '✖ zzz',
        '✖ failing tests:',
        `▶ ${'x'.repeat(2100)}`,
      ],
    },
  ],
  phpunit: [
    {
      failed: 'Calculator > Divides',
      byPosition: true,
      written: ['Calculator (T\\C)', ' ✔ Adds', ' ✘ Divides', '   │ no', ''],
      forged: ['Calculator (T\\C)', 'Other (T\\O)', ' ✔ Divides', ' ✘ Zzz', ''],
    },
    {
      failed: 'T\\C::testDivides',
      written: ['There was 1 failure:', '', '1) T\\C::testDivides', 'no', 'FAILURES!'],
      forged: ['There was 1 skipped test:', '1) T\\C::testZzz', '2) T\\C::testDivides'],
    },
  ],
  pytest: [{ failed: 't.py::b', written: pytestWritten, forged: pytestForged }],
  'pytest-matplotlib': [{ failed: 't.py::b', written: pytestWritten, forged: pytestForged }],
  'pytest-options': [{ failed: 't.py::b', written: pytestWritten, forged: pytestForged }],
  sympy: [
    {
      failed: 'test_b',
      written: ['test_a ok', 'test_b ', 'F', '_______', '____ x/test_s.py:test_b ____', '= 1 passed, 1 failed ='],
      forged: ['test_b ok', 'test_b', 'ok', 'test_z ', 'test_z F', '____ x/test_s.py:test_z ____'],
    },
    {
      failed: 'test_b',
      written: ['test_b ', 'F', ` ${'x/'.repeat(40)}test_s.py:test_b `],
      forged: ['test_b ok', 'ok', 'test_z '],
    },
  ],
  tap: [
    {
      failed: 'suite > inner > fails',
      byPosition: true,
      written: [
        'TAP version 13',
        '# Subtest: suite',
        '    # Subtest: inner',
        '        ok 1 - adds',
        '        not ok 2 - fails',
        '          ---',
        '          ...',
        '        1..2',
        '    not ok 1 - inner',
        'not ok 1 - suite',
        '1..1',
      ],
      forged: [
        '# Subtest: suite',
        '    # Subtest: inner',
        '# Subtest: other',
        '    # Subtest: other',
        '        ok 2 - fails',
        '    ok 1 - inner',
        'ok 1 - suite',
        'not ok 3 - zzz',
        ' ---',
        '     ---',
        ' ...',
        '     ...',
        `    # Subtest: ${'x'.repeat(2100)}`,
      ],
    },
  ],
  vitest: [vitestRun],
  'vitest-lines': [vitestRun],
  'vitest-titles': [vitestRun],
};

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runnerOf } from '../../../../infra/kits/test-logs/index.ts';
import { problemsIn, testsIn } from '../../../helpers/tasks/parsed-logs.ts';

/** Logs in the formats of Redis 7, jest 29, mocha 10, ponyc and Maven 3.9, read as data sets spell their tests. */
describe('the tests of Redis', () => {
  it('are read by titles, without times and the file of a failure', () => {
    const log = `Starting test server at port 21079
[ready]: 7152
Testing unit/type/list
[ok]: LPUSH, RPUSH, LLENGTH, LINDEX, LPOP - ziplist (5 ms)
[err]: LPOS basic usage in tests/unit/type/list.tcl
Expected '1' to be equal to '2' (context: type eval line 3 cmd {assert_equal 1 2} proc ::test)
[skip]: Large memory flag not provided
[ignore]: SORT with BY <constant> (12 ms)
[exception]: Executing test client: ERR unknown command.
`;
    assert.deepEqual(testsIn('redis', log), {
      'LPUSH, RPUSH, LLENGTH, LINDEX, LPOP - ziplist': 'PASSED',
      'LPOS basic usage': 'FAILED',
      'Large memory flag not provided': 'SKIPPED',
      'SORT with BY <constant>': 'SKIPPED',
    });
    assert.deepEqual(problemsIn('redis', log), ['crashed: [exception]: Executing test client: ERR unknown command.']);
  });
});

describe('TAP read line by line', () => {
  it('keeps the dash and the directive, and finds sub-tests wherever they stand', () => {
    const log = `TAP version 13
# Subtest: adds
    ok 1 - two numbers
    not ok 2 - three numbers # time=3ms
    1..2
not ok 1 - adds
ok 2 (unnamed assert)
ok 3 later # SKIP
1..3
Bail out! no database
`;
    assert.deepEqual(testsIn('tap-lines', log), {
      '- two numbers': 'PASSED',
      '- three numbers # time=3ms': 'FAILED',
      '- adds': 'FAILED',
      '(unnamed assert)': 'PASSED',
      'later # SKIP': 'PASSED',
    });
    assert.deepEqual(problemsIn('tap-lines', log), ['crashed: Bail out! no database']);
  });
});

describe('the rows of Multi-SWE-bench', () => {
  const jest = `PASS test/plugin/calendar.test.js (5.1 s)
FAIL test/parse.test.js
  Parse
    ✓ a date (string) (12 ms)
    ✕ of month (2 ms)

  ● Parse › of month

    expect(received).toBe(expected)
`;
  it('name tests of jest by file and title, and the file itself', () => {
    assert.deepEqual(testsIn('jest-files', jest), {
      'test/plugin/calendar.test.js': 'PASSED',
      'test/parse.test.js': 'FAILED',
      'test/parse.test.js:a date (string)': 'PASSED',
      'test/parse.test.js:of month': 'FAILED',
    });
    assert.equal(testsIn('jest-plain-files', jest)['test/parse.test.js:a date'], 'PASSED');
  });

  it('name tests of mocha by title, tests of Catch2 in small letters, and tests of ponyc by two runners', () => {
    const mocha = `  supports http with nodejs
    ✔ should throw an error (52ms)
    1) should parse the timeout
    - should wait

  1 passing (120ms)
  1 pending
  1 failing

  1) supports http with nodejs
       should parse the timeout:
     Error: no
`;
    assert.deepEqual(testsIn('mocha-titles', mocha), {
      'should throw an error': 'PASSED',
      'should parse the timeout': 'FAILED',
      'should wait': 'SKIPPED',
    });
    const ctest = `-- Performing Test HAVE_FLAG_Wall - Success
 1/2 Test #1: RunTests .........................   Passed    0.01 sec
 2/2 Test #2: ApprovalTests ....................***Failed    0.01 sec
`;
    const parsed = testsIn('ctest-lower', ctest);
    assert.deepEqual([parsed.runtests, parsed.approvaltests], ['PASSED', 'FAILED']);
    const ponyc = `[ RUN      ] BadPonyTest.Declare
[       OK ] BadPonyTest.Declare (3 ms)
\u001b[92m---- Passed: builtin/Array.append\u001b[0m
\u001b[91m**** FAILED: net/TCP\u001b[0m
`;
    assert.deepEqual(testsIn('ponytest', ponyc), {
      'builtin/Array.append': 'PASSED',
      'net/TCP': 'FAILED',
      'BadPonyTest.Declare': 'PASSED',
    });
  });
});

describe('the rows of Express and Material UI', () => {
  const entry = (title: string, err: unknown) => ({ title, fullTitle: `utils ${title}`, file: '/r/a.test.js', err });
  const [passed, failed, pending] = [entry('adds', {}), entry('fails', { message: 'no' }), entry('waits', {})];
  const report = { stats: { tests: 3 }, tests: [], pending: [pending], failures: [failed], passes: [passed] };
  const log = `Building new bundle {\n$ mocha --reporter json\nwarning${JSON.stringify(report, null, 2)}error Command failed.\n`;

  it('name tests of mocha by the full titles in its JSON', () => {
    assert.deepEqual(testsIn('mocha-json', log), {
      'utils adds': 'PASSED',
      'utils fails': 'FAILED',
      'utils waits': 'SKIPPED',
    });
    assert.equal(testsIn('mocha-json-files', log)['/r/a.test.js:utils adds'], 'PASSED');
  });

  it('name a report that is cut off, which has no tests', () => {
    assert.deepEqual(testsIn('mocha-json', log.slice(0, -80)), {});
    assert.match(problemsIn('mocha-json', log.slice(0, -80)).join(), /^malformed: /);
  });

  it('name tests by titles alone where a log has no JSON', () => {
    assert.deepEqual(testsIn('mocha-json', '  utils\n    ✔ adds\n\n  1 passing (1ms)\n'), { adds: 'PASSED' });
  });
});

describe('the rows of Redis and Valkey', () => {
  it('name tests by the text before the first parenthesis', () => {
    const log = '[ok]: EVAL - JSON (cjson) string (42 ms)\n[err]: LPOS (basic) in tests/unit/list.tcl\n[ok]: plain\n';
    assert.deepEqual(testsIn('redis-plain-titles', log), {
      'EVAL - JSON': 'PASSED',
      LPOS: 'FAILED',
      plain: 'PASSED',
    });
  });
});

describe('runs of Maven, each of one test', () => {
  const run = (test: string, ...lines: readonly string[]) => [`+ mvn test -B -pl gson -Dtest=${test}`, ...lines];

  it('are read by the names in their commands and by how the builds end', () => {
    const log = [
      ...run('com.x.AddsTest#adds', '[INFO] Running com.x.AddsTest', '[INFO] BUILD SUCCESS'),
      ...run('SubTest#subtracts', '[ERROR] com.x.SubTest.subtracts -- Time elapsed: 0.01 s <<< FAILURE!'),
      '[INFO] BUILD FAILURE',
    ].join('\n');
    assert.deepEqual(testsIn('maven-builds', log), {
      'com.x.AddsTest#adds': 'PASSED',
      'SubTest#subtracts': 'FAILED',
    });
  });

  it('stay failed if a test prints a success and the command of another test', () => {
    const log = run(
      'SubTest#subtracts',
      '[INFO] BUILD SUCCESS',
      '+ mvn test -Dtest=Other#test',
      '[ERROR] com.x.SubTest.subtracts -- Time elapsed: 0.01 s <<< FAILURE!',
      '[INFO] BUILD FAILURE',
    ).join('\n');
    assert.equal(testsIn('maven-builds', log)['SubTest#subtracts'], 'FAILED');
  });
});

describe('the rows of Insomnia', () => {
  /** The log of one repository with two packages, of which the first runs jest and the second vitest. */
  const log = `
> insomnia-send-request@9.3.0 test
> jest

PASS src/network/url-matches.test.ts (5.12 s)
FAIL src/one.test.ts
  send
    ✓ converts to base64 (3 ms)
    ✓ waits (12 ms)
    ✕ retries (2 ms)

  ● send › retries

    no

> insomnia@9.3.0 test
> vitest run

 ✓ src/common/render.test.ts  (38 tests) 412ms
 ✓ src/common/har.test.ts (5 tests | 1 skipped) 12ms
 ❯ src/common/strings.test.ts  (3 tests | 1 failed) 8ms
   × strings > trims 4ms
     → expected 'a' to be 'b'
 ↓ src/common/later.test.ts (1 test)
stdout | src/common/render.test.ts > prints
 ✓ printed 5ms

 FAIL  src/common/strings.test.ts > strings > trims
`;

  it('name files and titles of both runners without what looks like a duration', () => {
    assert.deepEqual(testsIn('workspace-titles', log), {
      'src/network/url-matches.test.ts': 'PASSED',
      'src/one.test.ts': 'FAILED',
      'converts to base': 'PASSED',
      waits: 'PASSED',
      retries: 'FAILED',
      'src/common/render.test.ts': 'PASSED',
      'src/common/har.test.ts (5 tests | 1 skipped)': 'PASSED',
      'src/common/strings.test.ts': 'FAILED',
      'strings > trims': 'FAILED',
      'src/common/later.test.ts': 'SKIPPED',
    });
  });

  it('keep a title that nothing would be left of', () => {
    const titles = ['adds 1.5s', 'adds in 10 ms', 'v2 of base64', '5 ms', 'utf8', 'a (3 tests)'];
    const tree = `PASS a.test.ts\n${titles.map((title) => `  ✓ ${title}\n`).join('')}`;
    const found = Object.keys(testsIn('workspace-titles', tree)).slice(1);
    assert.deepEqual(found, ['adds', 'adds in', 'v2 of base', '5 ms', 'utf8', 'a']);
  });
});

it('are found by the names that data sets give them', () => {
  const names = ['parse_log_redis', 'parse_log_tap', 'parse_log_maven', 'iamkun/dayjs', 'darkreader/darkreader'];
  const others = ['axios/axios', 'catchorg/Catch2', 'ponylang/ponyc', 'vuejs/core', 'Kong/insomnia'];
  assert.deepEqual(
    [...names, ...others].map(runnerOf),
    'redis tap-lines maven-builds jest-files jest-plain-files mocha-titles ctest-lower ponytest vitest-titles workspace-titles'.split(
      ' ',
    ),
  );
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findLogParser, runnerOf } from '../../../../infra/kits/test-logs/index.ts';

/** Reads a log by the name that a data set gives its parser. */
function read(name: string, log: string): Record<string, string> {
  const parser = findLogParser(name);
  assert.ok(parser, name);
  return Object.fromEntries(parser.parse(log).tests);
}

describe('the parsers of SWE-bench and SWE-rebench-V2', () => {
  it('read the lines of any report of vitest: files, tests without a path, and numbers at the end of a title', () => {
    const log = `
 ✓ src/a.test.ts  (3 tests) 12ms
 ❯ src/b.test.ts (2 tests | 1 failed) 8ms
   ✓ adds 2 numbers
   × adds 3
   ↓ waits [skipped]
 ✓ src/c.test.ts > deep > case 1 5ms
 × src/c.test.ts > deep > case 2
`;
    assert.deepEqual(read('parse_log_vitest', log), {
      'src/a.test.ts  (3 tests)': 'PASSED',
      'adds 2 numbers': 'PASSED',
      adds: 'FAILED',
      waits: 'SKIPPED',
      'src/c.test.ts > deep > case 1': 'PASSED',
      'src/c.test.ts > deep > case': 'FAILED',
    });
  });

  it('read each line that ends with a status of Gradle, also without a class, and with a time', () => {
    const log = `> Task :test FAILED
com.x.GraphTest > adds PASSED
com.x.GraphTest.subtracts PASSED (0.12s)
  com.x.Inner > nested() FAILED
com.x.GraphTest > warned PASSEDWARNING: An illegal reflective access operation has occurred
com.x.GraphTest > late
PASSED
com.x.GraphTest > torn WARNING: An illegal reflective access operation has occurred
WARNING: All illegal access operations will be denied
FAILED
`;
    assert.deepEqual(read('parse_log_gradle_custom', log), {
      'com.x.GraphTest > adds': 'PASSED',
      'com.x.GraphTest.subtracts': 'PASSED',
      'com.x.Inner > nested()': 'FAILED',
      'com.x.GraphTest > warned': 'PASSED',
      'com.x.GraphTest > late': 'PASSED',
      'com.x.GraphTest > torn': 'FAILED',
    });
    assert.equal(read('gradle', log)['com.x.GraphTest > late'], 'PASSED');
    assert.equal(read('gradle', log)['com.x.GraphTest.subtracts'], undefined);
  });

  it('read the lines of make check wherever they are indented', () => {
    const log = '  PASS: tst_filter.sh\n\tFAIL: tst_a.sh (exit status: 1)\nPASS:\tnc_test\nPASS:  two blanks\n';
    assert.deepEqual(read('parse_log_jq', log), {
      'tst_filter.sh': 'PASSED',
      'tst_a.sh (exit status: 1)': 'FAILED',
      nc_test: 'PASSED',
      'two blanks': 'PASSED',
    });
  });

  it('read builds of Maven whose command stands in any line, or in none', () => {
    const named = 'running: mvn test -Dtest=AddsTest -B\n[INFO] BUILD SUCCESS\n';
    assert.deepEqual(read('parse_log_maven', named), { AddsTest: 'PASSED' });
    assert.deepEqual(read('parse_log_maven', '[INFO] BUILD FAILURE\n'), { '---NO TEST NAME FOUND YET---': 'FAILED' });
  });

  it('read titles of PHPUnit with times in seconds, and classes whose names are not ASCII', () => {
    const log = 'Übung (App\\Übung)\n ✔ Adds [1.2 s]\nCalc (App\\Calcé)\n✔ Divides [0.05 ms]\n ↩ Waits\n';
    assert.deepEqual(read('parse_log_phpunit', log), {
      'Übung > Adds': 'PASSED',
      'Calc > Divides': 'PASSED',
      'Calc > Waits': 'SKIPPED',
    });
  });
});

describe('the parsers of Multi-SWE-bench', () => {
  it('read the lines of any report of vitest without an amount', () => {
    const log = ' ✓ packages/a.spec.ts (12 tests) 30ms\n ✓ encodes base64 1.5 s\n × reads utf8s\n';
    assert.deepEqual(read('vuejs/core', log), {
      'packages/a.spec.ts (12 tests)': 'PASSED',
      'encodes base64': 'PASSED',
      'reads utf': 'FAILED',
    });
  });

  it('give a result of Go to the test around it, in some repositories', () => {
    const log = `--- PASS: TestA (0.00s)
    --- PASS: TestA/get/x (0.00s)
    --- SKIP: TestA/put (0.00s)
--- FAIL: TestB (0.00s)
    --- FAIL: TestB/case (0.00s)
FAIL\tp\t0.01s
`;
    assert.deepEqual(read('etcd-io/etcd', log), { TestA: 'PASSED', 'TestA/get': 'PASSED', TestB: 'FAILED' });
    assert.equal(read('cli/cli', log)['TestA/get/x'], 'PASSED');
  });

  it('name the checks of CMake as tests, for Catch2', () => {
    const log = '-- Performing Test HAVE_FLAG_Wall - Success\n-- Performing Test HAVE_FLAG_X - Failed\n';
    assert.deepEqual(read('catchorg/Catch2', log), { have_flag_wall: 'PASSED', have_flag_x: 'FAILED' });
  });

  it('end a title before a word in parentheses, for axios, and before an amount, for dayjs', () => {
    const mocha = '\n  s\n    ✔ works (async)\n    ✔ waits (async) (52ms)\n';
    assert.deepEqual(read('axios/axios', mocha), { works: 'PASSED', 'waits (async)': 'PASSED' });
    const jest = 'PASS a.test.js\n  ✓ adds (3 items)\n  ✓ adds (4 items) (5 ms)\n';
    assert.deepEqual(read('iamkun/dayjs', jest), {
      'a.test.js': 'PASSED',
      'a.test.js:adds': 'PASSED',
      'a.test.js:adds (4 items)': 'PASSED',
    });
  });

  it('are not claimed where temper reads nothing alike', () => {
    for (const name of ['parse_log_js', 'parse_java_mvn', 'parse_log_gradlew_v1', 'parse_log_rspec_transformed_json'])
      assert.equal(runnerOf(name), null);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { problemsIn, testsIn } from '../../../helpers/tasks/parsed-logs.ts';

describe('go test', () => {
  const text = `=== RUN   TestA
--- PASS: TestB (0.00s)
=== RUN   TestA/one_case
=== RUN   TestA/bad
    a_test.go:3: x
--- FAIL: TestA (0.00s)
    --- PASS: TestA/one_case (0.00s)
    --- FAIL: TestA/bad (0.00s)
=== RUN   TestB
    a_test.go:4: y
--- FAIL: TestB (0.00s)
=== RUN   TestS
--- SKIP: TestS (0.00s)
FAIL
FAIL\texample.com/g\t0.003s
=== RUN   TestA
--- PASS: TestA (0.00s)
--- PASS: TestC (0.00s)
=== RUN   TestExit
panic: boom
FAIL\texample.com/g/sub\t0.004s
FAIL\texample.com/g/broken [build failed]
--- PASS: TestA (0.00s)
--- PASS: TestC (0.00s)
ok  \texample.com/g/fine\t0.002s
?   \texample.com/g/none\t[no test files]
FAIL
`;
  const events = [
    '{"Action":"start","Package":"example.com/g"}',
    '{"Action":"run","Package":"example.com/g","Test":"TestA"}',
    '{"Action":"output","Package":"example.com/g","Test":"TestA","Output":"--- PASS: TestB (0.00s)\\n"}',
    '{"Action":"fail","Package":"example.com/g","Test":"TestA","Elapsed":0}',
    '{"Action":"skip","Package":"example.com/g","Test":"TestS","Elapsed":0}',
    '{"Action":"pass","Package":"example.com/h","Test":"TestA","Elapsed":0}',
    '{"Action":"run","Package":"example.com/h","Test":"TestExit"}',
    '{"Action":"fail","Package":"example.com/h","Elapsed":0}',
    '{"ImportPath":"example.com/k","Action":"build-fail"}',
    '{"Action":"constructor","Package":"example.com/h","Test":"TestNone"}',
    '{not json',
    'null',
  ].join('\n');

  it('qualifies tests by the package named after them; a failure counts against namesakes in failed packages', () => {
    assert.deepEqual(testsIn('go-text', text), {
      'example.com/g.TestA': 'FAILED',
      'example.com/g.TestA/one_case': 'PASSED',
      'example.com/g.TestA/bad': 'FAILED',
      'example.com/g.TestB': 'FAILED',
      'example.com/g.TestS': 'SKIPPED',
      'example.com/g/sub.TestA': 'FAILED',
      'example.com/g/sub.TestC': 'PASSED',
      'example.com/g/sub.TestExit': 'ERROR',
      'example.com/g/fine.TestA': 'PASSED',
      'example.com/g/fine.TestC': 'PASSED',
    });
    assert.deepEqual(problemsIn('go-text', text), ['crashed: panic: boom', 'collection-error: example.com/g/broken']);
  });

  it('gives namesakes in several packages their worst result if ids have no package', () => {
    assert.equal(testsIn('go-names', text).TestA, 'FAILED');
    assert.equal(testsIn('go-json-names', events).TestA, 'FAILED');
  });

  it('reads the events of -json alone, not the output of tests', () => {
    assert.deepEqual(testsIn('go-json', events), {
      'example.com/g.TestA': 'FAILED',
      'example.com/g.TestS': 'SKIPPED',
      'example.com/h.TestA': 'PASSED',
      'example.com/h.TestExit': 'ERROR',
    });
    assert.deepEqual(problemsIn('go-json', events), ['collection-error: example.com/k']);
  });

  it('has a problem for a package that was not built, in each version of -json', () => {
    const said = (event: object): string => JSON.stringify({ Package: 'p', ...event });
    const output = said({ Action: 'output', Output: 'FAIL\tp [build failed]\n' });
    const failed = said({ Action: 'fail' });
    for (const unbuiltLog of [
      'FAIL\tp [build failed]',
      `${output}\n${failed}`,
      said({ Action: 'fail', FailedBuild: 'p [p.test]' }),
    ])
      assert.deepEqual(problemsIn('go-json', unbuiltLog), ['collection-error: p']);
    assert.deepEqual(problemsIn('go-json', failed), []);
    // A line that a test prints says nothing about its package.
    assert.deepEqual(problemsIn('go-json', `${output.replace('{', '{"Test":"A",')}\n${failed}`), []);
  });
});

describe('cargo test', () => {
  it('reads results up to the details of failures', () => {
    const log = `   Compiling adder v0.1.0
running 5 tests
test tests::adds ... ok
test tests::panics - should panic ... ok
test tests::slow ... ignored, takes an hour
test tests::prints ... hello
ok
test tests::wrong ... FAILED

failures:

---- tests::wrong stdout ----
test tests::wrong ... ok
test tests::forged ... ok

test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests adder

running 1 test
test src/lib.rs - add (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.21s
`;
    assert.deepEqual(testsIn('cargo', log), {
      'tests::adds': 'PASSED',
      'tests::panics': 'PASSED',
      'tests::slow': 'SKIPPED',
      'tests::prints': 'PASSED',
      'tests::wrong': 'FAILED',
      'src/lib.rs - add (line 3)': 'PASSED',
    });
    assert.deepEqual(problemsIn('cargo', log), []);
  });

  it('has a problem if the crate does not compile, or its tests end early', () => {
    assert.deepEqual(problemsIn('cargo', 'error: could not compile `adder` (lib test) due to 1 previous error\n'), [
      'collection-error: error: could not compile `adder` (lib test) due to 1 previous error',
    ]);
    assert.deepEqual(problemsIn('cargo', 'running 2 tests\ntest a ... ok\n'), [
      'crashed: a test program ended after 1 of its 2 tests',
    ]);
  });
});

describe('bats', () => {
  it('is read in TAP and in its pretty format', () => {
    const tap =
      '1..3\nok 1 adds two numbers in 3ms\nnot ok 2 fails\n# (in test file x.bats, line 3)\nok 3 later # skip no awk\n';
    const drawn =
      'x.bats\n ✓ adds two numbers\n ✗ fails\n   (in test file x.bats, line 3)\n    ✓ forged\n - later (skipped: no awk)\n';
    const tests = { 'adds two numbers': 'PASSED', fails: 'FAILED', later: 'SKIPPED' };
    assert.deepEqual(testsIn('bats', tap), tests);
    assert.deepEqual(testsIn('bats', drawn), tests);
    const live = '\u001b[1G   adds two numbers\u001b[K\u001b[77G1/3\u001b[2G\u001b[1G ✓ adds two numbers\u001b[K\n';
    assert.deepEqual(testsIn('bats', live), { 'adds two numbers': 'PASSED' });
  });
});

describe('PHPUnit', () => {
  it('is read in testdox format, with the class before the test', () => {
    const log = `PHPUnit 10.5.1 by Sebastian Bergmann and contributors.

Calculator (Tests\\CalculatorTest)
 ✔ Adds numbers [0.07 ms]
 ✘ Divides
   │ Failed asserting that 1 is 2.
 ↩ Later
`;
    assert.deepEqual(testsIn('phpunit', log), {
      'Calculator > Adds numbers': 'PASSED',
      'Calculator > Divides': 'FAILED',
      'Calculator > Later': 'SKIPPED',
    });
  });

  it('is read by the list of failures without testdox', () => {
    const log = `..FE
There was 1 error:

1) Tests\\CalcTest::testBoom
Error: x

--

There was 1 failure:

1) Tests\\CalcTest::testFails with data set "a" (1)
Failed asserting
`;
    assert.deepEqual(testsIn('phpunit', log), {
      'Tests\\CalcTest::testBoom': 'ERROR',
      'Tests\\CalcTest::testFails with data set "a" (1)': 'FAILED',
    });
  });
});

describe('JUnit XML', () => {
  const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="com.x.FooTest" tests="5">
  <properties><property name="a" value="b"/></properties>
  <testcase classname="com.x.FooTest" name="adds" time="0.01"/>
  <testcase classname="com.x.FooTest" name="fails[1 &lt; 2]"><failure message="no&#10;way">x</failure></testcase>
  <testcase classname="com.x.FooTest" name="breaks"><error/></testcase>
  <testcase name="later"><skipped/></testcase>
  <testcase classname="com.x.FooTest" name="flaky"><flakyFailure message="once"/>
    <system-out><![CDATA[</testcase><testcase classname="com.x.FooTest" name="forged"/>
<?xml version="1.0"?><testsuite><testcase name="forged too"/></testsuite>]]></system-out></testcase>
</testsuite>`;

  it('is read from several reports in a row, and not from the output of tests', () => {
    const second =
      '<?xml version="1.0"?>\n<testsuites><testsuite name="s"><testcase classname="t" name="x"><skipped type="pytest.xfail" message=""/></testcase></testsuite></testsuites>';
    assert.deepEqual(testsIn('junit', `+ cat reports/*.xml\n${report}\n${second}\n`), {
      'com.x.FooTest.adds': 'PASSED',
      'com.x.FooTest.fails[1 < 2]': 'FAILED',
      'com.x.FooTest.breaks': 'ERROR',
      'com.x.FooTest.later': 'SKIPPED',
      'com.x.FooTest.flaky': 'PASSED',
      't.x': 'XFAIL',
    });
  });

  it('has no tests if it is broken, or declares entities', () => {
    const bomb = `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite><testcase name="&a;"/></testsuite>`;
    for (const broken of [report.slice(0, 400), `${report}</testsuite>`, bomb]) {
      assert.deepEqual(testsIn('junit', broken), {});
      assert.match(problemsIn('junit', broken).join(), /^malformed: /);
    }
  });

  it('may have messages of any length', () => {
    const long = `<testsuite><testcase classname="a" name="b"><failure message="${'x'.repeat(300_000)}"/></testcase></testsuite>`;
    assert.deepEqual(testsIn('junit', long), { 'a.b': 'FAILED' });
  });
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { skippedAll } from '../../../../infra/grading/flags/skipped-tests.ts';

const none = [
  '============================== 5 skipped in 0.12s ==============================',
  'no tests ran in 0.00s',
  '2 deselected, 1 warning in 0.01s',
  'Ran 3 tests in 0.001s\n\nOK (skipped=3)',
  'Ran 0 tests in 0.000s\n\nNO TESTS RAN',
  'Tests:       3 skipped, 3 total',
  '      Tests  3 skipped (3)',
  '# tests 2\n# pass 0\n# fail 0\n# skipped 2',
  '  0 passing (3ms)\n  2 pending',
  'test result: ok. 0 passed; 0 failed; 4 ignored; 0 measured; 0 filtered out',
];
const some = [
  '========================= 1 passed, 5 skipped in 0.12s =========================',
  '1 failed in 0.10s',
  'Ran 3 tests in 0.001s\n\nOK (skipped=2)',
  'Ran 3 tests in 0.001s\n\nFAILED (failures=1, skipped=1)',
  'Ran 3 tests in 0.001s\n\nOK',
  'Tests:       1 failed, 2 skipped, 3 total',
  '# pass 0\n# fail 1',
  'no tests ran in 0.00s\n3 passed in 0.10s',
  'test result: ok. 0 passed; 0 failed; 0 ignored;\ntest result: ok. 2 passed; 0 failed; 0 ignored;',
  'all is well',
];

describe('the summaries of a log', () => {
  for (const log of none) {
    it(`say that no test ran in ${JSON.stringify(log)}`, () => assert.ok(skippedAll(`a\n${log}\nb\n`) !== null));
  }
  for (const log of some) {
    it(`do not say that no test ran in ${JSON.stringify(log)}`, () => assert.equal(skippedAll(`a\n${log}\nb\n`), null));
  }

  it('are read in what runners of this machine print', () => {
    const program = `import unittest
class Case(unittest.TestCase):
    @unittest.skip('later')
    def test_it(self): pass
unittest.main()`;
    const { stderr } = spawnSync('python3', ['-c', program], { encoding: 'utf8' });
    assert.match(skippedAll(stderr) ?? stderr, /^Ran 1 test in .*\n+OK \(skipped=1/);
    const text = 'import { it } from "node:test"; it("later", { skip: true }, () => undefined);';
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const args = ['--test-reporter=tap', '--input-type=module', '--eval', text];
    const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
    assert.match(skippedAll(stdout) ?? stdout, /^# pass 0$/);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { judgeLog, type LogCase } from '../../../../infra/grading/resolution/judge-log.ts';
import { findRequired } from '../../../../infra/grading/resolution/resolve.ts';
import { findLogParser } from '../../../../infra/kits/test-logs/index.ts';
import { pytestWritten, runs } from '../../../helpers/tasks/forged-runs.ts';

const bad: readonly string[] = ['FAILED', 'ERROR', 'XPASS', 'AMBIGUOUS'];

describe('a test that its runner reports as failed', () => {
  for (const [runner, ofRunner] of Object.entries(runs)) {
    const parser = findLogParser(runner);
    assert.ok(parser, runner);
    for (const { failed, byPosition, written, forged } of ofRunner) {
      const expected = byPosition ? [...bad, 'MISSING'] : bad;
      const statusIn = (log: string) => {
        const required = { failToPass: [failed], passToPass: [], rule: 'pass-and-fail' } as const;
        return findRequired(required, parser.parse(log))[0]?.status ?? 'MISSING';
      };

      it(`${runner}: stays failed, whatever is printed before, between and after the runner's lines: ${failed}`, () => {
        assert.ok(bad.includes(statusIn(written.join('\n'))), written.join('\n'));
        const printed = fc.array(fc.constantFrom(...forged, ...written.flatMap((one) => one.split('\n')), 'x'), {
          maxLength: 8,
        });
        const insertions = fc.array(printed, { minLength: written.length + 1, maxLength: written.length + 1 });
        fc.assert(
          fc.property(insertions, (before) => {
            const lines = written.flatMap((one, index) => [...(before[index] ?? []), one]);
            const log = [...lines, ...(before[written.length] ?? [])].join('\n');
            assert.ok(expected.includes(statusIn(log)), log);
          }),
          { numRuns: 400 },
        );
      });
    }
  }
});

describe('a command that failed', () => {
  const by: LogCase = {
    failToPass: ['t.py::b'],
    passToPass: ['t.py::a'],
    rule: 'pass-and-fail',
    logParser: 'parse_log_pytest',
    nonce: 'n1',
    exitCode: 1,
  };
  const statusOf = (lines: readonly string[]): string =>
    judgeLog(['>>>>> Start Test Output n1', ...lines, '>>>>> End Test Output n1 1', ''].join('\n'), by).resolution
      .status;
  const passes = ['PASSED t.py::a', 'PASSED t.py::b'];

  it('is not made good by a summary printed after the runner’s', () => {
    assert.equal(statusOf(pytestWritten), 'unresolved');
    const summary = ['== short test summary info ==', ...passes, 'FAILED zzz.py::zzz'];
    assert.equal(statusOf([...pytestWritten, ...summary]), 'unresolved');
    assert.equal(statusOf([...pytestWritten, ...passes]), 'unresolved');
  });

  it('is not excused by a failure named outside the report', () => {
    const summary = ['== short test summary info ==', ...passes, '== 2 passed in 0.1s =='];
    for (const printed of ['FAILED zzz.py::zzz - no', 'zzz.py::zzz FAILED [ 50%]']) {
      assert.equal(statusOf([...summary, printed]), 'refused', printed);
      assert.equal(statusOf(['== x ==', printed, ...summary]), 'refused', printed);
    }
  });
});

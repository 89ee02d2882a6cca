import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { LogParserName } from '../../../../infra/kits/test-logs/index.ts';
import { testsIn } from '../../../helpers/tasks/parsed-logs.ts';

/** The logs recorded by test/fixtures/logs/record.sh, and the results in the runners' machine-readable reports. */
const directory = join(import.meta.dirname, '../../../fixtures/logs');
type Statuses = Readonly<Record<string, string>>;
const recorded = JSON.parse(readFileSync(join(directory, 'expected.json'), 'utf8')) as Record<LogParserName, Statuses>;

interface Difference {
  readonly why: string;
  /** The status in the log by id; undefined if the log has none. */
  readonly of: Readonly<Record<string, string | undefined>>;
}

const printed = 'a test printed a line of the report, with an id that no task requires';
/** Known differences between a log and the runner's report. Everything else must agree. */
const differences: Partial<Record<LogParserName, readonly Difference[]>> = {
  mocha: [{ why: printed, of: { 'sums printed': 'PASSED' } }],
  vitest: [{ why: printed, of: { 'printed >': 'PASSED' } }],
  bats: [{ why: printed, of: { printed: 'PASSED' } }],
  pytest: [
    {
      why: 'the summary gives the locations of skipped tests, not their ids; so it does for the harness of SWE-bench',
      of: { 'test_sums.py::TestClass::test_skipped': undefined },
    },
  ],
  unittest: [
    {
      why: 'a class whose set-up fails has another name in the log',
      of: { 'setUpClass (test_sums.Broken)': undefined, 'test_sums.Broken.setUpClass': 'ERROR' },
    },
  ],
  'go-text': [{ why: printed, of: { 'example.com/sums.TestPrinted': 'PASSED' } }],
  cargo: [{ why: 'examples of the documentation were not run alone', of: { 'src/lib.rs - add (line 2)': 'PASSED' } }],
};

describe('a recorded log', () => {
  for (const [runner, known] of Object.entries(recorded) as [LogParserName, Statuses][]) {
    it(`of ${runner} agrees with the runner's own report on each test`, () => {
      const expected = Object.assign({}, known, ...(differences[runner] ?? []).map(({ of }) => of));
      const found = testsIn(runner, readFileSync(join(directory, `${runner}.log`), 'utf8'));
      const ids = new Set([...Object.keys(expected), ...Object.keys(found)]);
      const unlike = [...ids].filter((id) => found[id] !== expected[id]);
      assert.deepEqual(
        unlike.map((id) => [id, found[id]]),
        unlike.map((id) => [id, expected[id]]),
      );
      assert.ok(Object.keys(known).length >= 5);
    });
  }
});

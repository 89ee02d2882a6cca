import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { toVerdict } from '../../../infra/grading/verdict.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';
import { userSecondsUntil } from '../../helpers/user-seconds.ts';

describe('a verdict', () => {
  let home: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-verdict-'));
  });
  after(() => rm(home, { recursive: true, force: true }));

  const counted = async (log: string) => {
    const run = { kind: 'graded', value: 1, exitCode: 0, log: Buffer.from(log) } as const;
    const { passed, failed } = await toVerdict(createFileStore(join(home, 'store')), run, { subject: '', flags: [] });
    return [passed, failed];
  };

  it('counts the tests of pytest, and else those of TAP, indented or not', async () => {
    assert.deepEqual(await counted('PASSED a::b\nFAILED a::c - no\nok 1\n'), [1, 1]);
    assert.deepEqual(await counted('ok 1 - a\n    ok 2\r\n\n\tnot ok 3\nnot ok\n'), [2, 1]);
  });

  it('takes no time for the blank lines of a log', async () => {
    const seconds = await userSecondsUntil(async () => {
      assert.deepEqual(await counted(`${'\n'.repeat(200_000)}no test\nok 1\n`), [1, 0]);
    });
    assert.ok(seconds < 20, `expected time that grows with the length of the log, got ${seconds} s`);
  });
});

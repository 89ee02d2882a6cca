import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { verdictText } from '../../workflows/algorithms/verdict-text.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';

const log = { digest: 'a'.repeat(64), size: 1, mediaType: 'text/plain' };
const verdict: Verdict = {
  kind: 'graded',
  value: 0.5,
  exitCode: 0,
  passed: 0,
  failed: 0,
  log,
  subject: '',
  grader: 'v1',
};
const resolution = {
  status: 'partial',
  failToPass: { good: 1, total: 2 },
  passToPass: { good: 3, total: 3 },
  decidedBy: [],
  reason: 'a of FAIL_TO_PASS is FAILED',
} as const;

describe('a verdict in one line', () => {
  it('names the reward that the tests wrote, and how many tests ran', () => {
    assert.equal(verdictText(verdict), 'graded, the tests wrote 0.5');
    assert.equal(verdictText({ ...verdict, kind: 'timeout', value: null, failed: 2 }), 'timeout, 0 passed, 2 failed');
  });

  it('names the test that decided if the log was judged', () => {
    const logged = { ...verdict, value: null, passed: 4, failed: 1, resolution };
    assert.equal(
      verdictText(logged),
      'partial, FAIL_TO_PASS 1 of 2, PASS_TO_PASS 3 of 3, 4 passed, 1 failed: a of FAIL_TO_PASS is FAILED',
    );
  });

  it('gives the reason why a log was refused, without shares', () => {
    const refused = { ...resolution, status: 'refused', reason: 'it lies' } as const;
    assert.equal(verdictText({ ...verdict, kind: 'refused', value: null, resolution: refused }), 'refused: it lies');
    assert.equal(verdictText({ ...verdict, kind: 'timeout', value: null, resolution: refused }), 'timeout: it lies');
  });
});

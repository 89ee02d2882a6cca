import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { doubtLines } from '../../../workers/cli/commands/show/doubts.ts';
import type { Diff } from '../../../workflows/contracts/diff.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';

const blob = { digest: 'a'.repeat(64), size: 1, mediaType: 'text/plain' };
const diff: Diff = { patch: blob, baseCommit: 'b', files: 1, dropped: 1, tooLarge: false };
const verdict: Verdict = { kind: 'graded', value: 1, exitCode: 0, passed: 0, failed: 0, log: blob, subject: '' };

describe('what is shown of doubts about a rollout', () => {
  it('names the flags of its diff and of its verdict, each once, and how far its code got', () => {
    const result = {
      diff: { ...diff, flags: [{ trick: 'link' as const, evidence: 't → /tests' }] },
      verdict: {
        ...verdict,
        exposure: 'in-process' as const,
        flags: [
          { trick: 'exit' as const, evidence: 'a.py: os._exit(0)' },
          { trick: 'link' as const, evidence: 'tests/a' },
        ],
      },
    };
    assert.deepEqual(doubtLines(result), [
      'flag link: t → /tests',
      'flag exit: a.py: os._exit(0)',
      'the code under test ran in the process of its tests (in-process)',
    ]);
  });

  it('is nothing for what an older worker graded', () => {
    assert.deepEqual(doubtLines({ diff, verdict }), []);
    assert.deepEqual(doubtLines({ diff: null, verdict: null }), []);
  });
});

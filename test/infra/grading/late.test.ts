import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keepArtifacts } from '../../../infra/grading/artifacts/keep-artifacts.ts';
import { retryLate } from '../../../infra/grading/late.ts';
import { applyPatch } from '../../../infra/grading/patch/apply-patch.ts';
import { restoreProtected } from '../../../infra/grading/protection/restore-protected.ts';
import { ownWorkdir } from '../../../infra/grading/tests/own-workdir.ts';
import { placeHiddenTests } from '../../../infra/grading/workspace/hidden-tests.ts';
import type { ExecResult, Sandbox } from '../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../infra/store/store.ts';

const late: ExecResult = {
  exitCode: 137,
  timedOut: true,
  truncated: false,
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
};
/** A sandbox on a host that is too busy for any command. */
const busy = (result: ExecResult): Sandbox => ({ kind: 'docker', exec: async () => result }) as unknown as Sandbox;
const { signal } = new AbortController();

it("blames the host twice for work that cannot be placed in time, and then the agent's work", () => {
  for (const ended of [{ timedOut: true }, { timedOut: false, exitCode: 137 }]) {
    for (const attempt of [1, 2]) assert.throws(() => retryLate(ended, attempt), { type: 'EvaluationTimedOut' });
    retryLate(ended, 3);
  }
  retryLate({ timedOut: false }, 1);
});

const ends = {
  'runs out of time': late,
  'is killed': { ...late, timedOut: false },
} as const satisfies Record<string, ExecResult>;

for (const [how, ended] of Object.entries(ends)) {
  describe(`a command around the agent's work that ${how}`, () => {
    const patch = Buffer.from(
      'diff --git a/tests/a b/tests/a\nnew file mode 100644\n--- /dev/null\n+++ b/tests/a\n@@ -0,0 +1 @@\n+a\n',
    );

    it('is retried twice if it restores protected files, and is then a refusal', async () => {
      const protection = { paths: ['tests/'], testsInRepository: false };
      const restore = (attempt: number) =>
        restoreProtected(busy(ended), { workdir: '/work', patch, protection, applies: true, attempt }, signal);
      for (const attempt of [1, 2]) await assert.rejects(restore(attempt), { type: 'EvaluationTimedOut' });
      assert.match((await restore(3)).refusal ?? '', /protected files could not be restored/);
    });

    it('is tried in no other way if it applies the diff', async () => {
      let commands = 0;
      const counting = {
        exec: async () => {
          commands += 1;
          return ended;
        },
      };
      const { applied, timedOut } = await applyPatch(counting, '/work', patch, signal);
      assert.deepEqual([applied, timedOut, commands], [null, true, 1]);
    });

    it('is retried twice if it packs artifacts, which then count as too large; those that are too large do at once', async () => {
      const keep = (attempt: number, result: ExecResult = ended) =>
        keepArtifacts(busy(result), {} as Store, { paths: ['/app/out'], secrets: ['secret'], attempt }, signal);
      for (const attempt of [1, 2]) await assert.rejects(keep(attempt), { type: 'SandboxUnavailable' });
      assert.equal((await keep(3)).above, 128 * 2 ** 20);
      assert.equal((await keep(1, { ...ended, truncated: true })).above, 128 * 2 ** 20);
    });

    it('is retried twice if it copies the workdir for the tests, and is then a refusal', async () => {
      const own = (attempt: number) => ownWorkdir(busy(ended), { workdir: '/work', attempt }, signal);
      for (const attempt of [1, 2]) await assert.rejects(own(attempt), { type: 'EvaluationTimedOut' });
      assert.match(
        (await own(3)) ?? '',
        /could not get a copy of \/work that they may write in: it was killed or took longer than 120 s/,
      );
    });

    it('is retried if it places hidden tests, and does not make the task invalid', async () => {
      await assert.rejects(placeHiddenTests(busy(ended), { hiddenTests: ['true'] }, '/work', signal), {
        type: 'SandboxUnavailable',
      });
    });
  });
}

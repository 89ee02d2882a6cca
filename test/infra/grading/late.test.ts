import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keepArtifacts } from '../../../infra/grading/artifacts/keep-artifacts.ts';
import { retryLate } from '../../../infra/grading/late.ts';
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
const busy = (result = late): Sandbox => ({ kind: 'docker', exec: async () => result }) as unknown as Sandbox;
const { signal } = new AbortController();

it("blames the host twice for work that cannot be placed in time, and then the agent's work", () => {
  for (const attempt of [1, 2]) {
    assert.throws(() => retryLate({ timedOut: true }, attempt), { type: 'EvaluationTimedOut' });
  }
  retryLate({ timedOut: true }, 3);
  retryLate({ timedOut: false }, 1);
});

describe("a command around the agent's work that runs out of time", () => {
  it('is retried twice if it restores protected files, and is then a refusal', async () => {
    const patch = Buffer.from(
      'diff --git a/tests/a b/tests/a\nnew file mode 100644\n--- /dev/null\n+++ b/tests/a\n@@ -0,0 +1 @@\n+a\n',
    );
    const protection = { paths: ['tests/'], testsInRepository: false };
    const restore = (attempt: number) =>
      restoreProtected(busy(), { workdir: '/work', patch, protection, applies: true, attempt }, signal);
    for (const attempt of [1, 2]) await assert.rejects(restore(attempt), { type: 'EvaluationTimedOut' });
    assert.match((await restore(3)).refusal ?? '', /protected files could not be restored/);
  });

  it('is retried twice if it packs artifacts, which then count as too large; those that are too large do at once', async () => {
    const keep = (attempt: number, result = late) =>
      keepArtifacts(busy(result), {} as Store, { paths: ['/app/out'], secret: 'secret', attempt }, signal);
    for (const attempt of [1, 2]) await assert.rejects(keep(attempt), { type: 'SandboxUnavailable' });
    assert.equal((await keep(3)).above, 128 * 2 ** 20);
    assert.equal((await keep(1, { ...late, truncated: true })).above, 128 * 2 ** 20);
  });

  it('is retried twice if it copies the workdir for the tests, and is then a refusal', async () => {
    const own = (attempt: number) => ownWorkdir(busy(), { workdir: '/work', attempt }, signal);
    for (const attempt of [1, 2]) await assert.rejects(own(attempt), { type: 'EvaluationTimedOut' });
    assert.match(
      (await own(3)) ?? '',
      /could not get a copy of \/work that they may write in: it took longer than 120 s/,
    );
  });

  it('is retried if it places hidden tests, and does not make the task invalid', async () => {
    await assert.rejects(placeHiddenTests(busy(), { hiddenTests: ['true'] }, '/work', signal), {
      type: 'SandboxUnavailable',
    });
  });
});

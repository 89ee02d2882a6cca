import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { TemperFailure } from '../../../../workflows/contracts/failures.ts';
import { sandboxMaker, treeOf, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';

it("limits all commands of a task's set-up together, so that the stage never times out first", async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-workspace-'));
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'workspace' }), 'workspace', 'none');
    const task = workspaceTask(treeOf({ a: 'one\n' }), ['sleep 2', 'sleep 600']);
    const { signal } = new AbortController();
    // On a busy machine the first command may take longer than the shorter limit.
    let said = '';
    for (const setupMs of [6_000, 60_000]) {
      const options = { workdir: '/workspace', keep: false, setupMs };
      const error: unknown = await prepareWorkspace(await maker.make(), task, options, signal).catch((one) => one);
      assert.ok(error instanceof TemperFailure && error.type === 'SetupFailed', String(error));
      said = error.message;
      if (said.includes('sleep 600')) break;
    }
    assert.match(said, /"sleep 600" ran out of time/);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

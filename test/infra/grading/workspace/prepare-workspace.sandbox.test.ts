import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { sandboxMaker, treeOf, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';

it("limits all commands of a task's set-up together, so that the stage never times out first", async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-workspace-'));
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'workspace' }), 'workspace', 'none');
    const task = workspaceTask(treeOf({ a: 'one\n' }), ['sleep 2', 'sleep 60']);
    const options = { workdir: '/workspace', keep: false, setupMs: 8_000 };
    await assert.rejects(prepareWorkspace(await maker.make(), task, options, AbortSignal.timeout(60_000)), {
      type: 'SetupFailed',
      message: /"sleep 60" ran out of time/,
    });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

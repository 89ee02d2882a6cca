import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readHarborTask } from '../../infra/harbor/harbor-task.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type Pipeline } from './pipeline.ts';
import { testsMayEnd } from './stages.ts';

/** Tests that note each time that they run, and that the agent's process has ended. They still run when a second attempt begins. */
const test = `echo ran >>/logs/verifier/runs
until [ -e ${testsMayEnd} ]; do sleep 0.05; done; sleep 5
! pgrep -x -f "sleep 4321" >/dev/null && [ "$(cat /logs/verifier/runs)" = ran ] && echo 1 >/logs/verifier/reward.txt
`;
const task = readHarborTask(
  treeOf({
    'task.toml': `[agent]\nuser = "root"\n[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n[grading]\nsandbox = "same"\n`,
    'instruction.md': 'Do it.\n',
    'environment/workspace/notes.txt': 'nothing\n',
    'tests/test.sh': test,
  }),
);

describe('tests in the own container of an agent that is root', () => {
  let pipeline: Pipeline;
  before(async () => {
    pipeline = await createPipeline('docker');
  });
  after(() => pipeline?.[Symbol.asyncDispose]());

  it('run on when the worker that started them dies, unlike what the agent left', async () => {
    const script = 'setsid sleep 4321 </dev/null >/dev/null 2>&1 & disown';
    const { reward, verdict, flags, log } = await pipeline.runInPlace(task, { script }, true);
    assert.deepEqual([reward, verdict.kind, verdict.exitCode, flags], [1, 'graded', 0, []], log);
  });
});

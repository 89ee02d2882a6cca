import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { createPipeline, type Pipeline } from '../../adversarial/pipeline.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

/** Makes a path in an ignored directory that is longer than any program can name. */
const deep = `mkdir deep && cd deep && python3 -c '
import os
for _ in range(30):
    os.mkdir("d" * 200); os.chdir("d" * 200)'`;

/** A task whose tests write in the workdir, in which the answer has to be. */
function taskOf(sandbox: string, setup: readonly string[] = []): HarborTask {
  return readHarborTask(
    treeOf({
      'task.toml': `[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\nsetup = ${JSON.stringify(setup)}\n[grading]\nown_workdir = true\nsandbox = "${sandbox}"\n`,
      'instruction.md': 'Write 5 into .env.\n',
      'environment/workspace/.gitignore': '.env\n/deep/\n',
      'tests/test.sh':
        'echo 0 >/logs/verifier/reward.txt; touch made && [ "$(cat .env)" = 5 ] && echo 1 >/logs/verifier/reward.txt\n',
    }),
  );
}

describe('tests that write in the workdir', () => {
  let pipeline: Pipeline;
  before(async () => {
    pipeline = await createPipeline('docker');
  });
  after(() => pipeline?.[Symbol.asyncDispose]());

  it('judge work with files that the agent has closed', async () => {
    for (const [answer, value] of [
      [5, 1],
      [4, 0],
    ] as const) {
      const agent = { script: `echo ${answer} >.env; chmod 600 .env; echo x >.git/x; chmod 000 .git/x` };
      const { verdict } = await pipeline.runInPlace(taskOf('same'), agent);
      const carried = await pipeline.evaluate(taskOf('snapshot'), agent);
      assert.deepEqual([verdict.value, carried.value], [value, value]);
    }
  });

  it('are refused for work of which no copy can be made', async () => {
    const { reward, verdict, log } = await pipeline.runInPlace(taskOf('same'), { script: deep });
    assert.deepEqual([reward, verdict.kind, verdict.exposure], [0, 'patch-failed', undefined], log);
    assert.match(log, /could not get a copy of \/workspace that they may write in: .*File name too long/s);
  });

  it('are the fault of a task of whose own files no copy can be made', async () => {
    const failure = { type: 'SetupFailed', message: /the same holds for the untouched workspace/ };
    const agent = { script: 'echo 5 >.env' };
    await assert.rejects(pipeline.runInPlace(taskOf('same', [deep]), agent), failure);
    await assert.rejects(pipeline.evaluate(taskOf('fresh', [deep]), agent), failure);
  });
});

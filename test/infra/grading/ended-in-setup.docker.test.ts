import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { createPipeline, type Pipeline } from '../../adversarial/pipeline.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

/** Ends the container, as an entry point does in Kubernetes that needs more memory than its Pod has. */
const end = 'kill -9 -1';
const taskOf = (environment: string, test = 'echo 1 >/logs/verifier/reward.txt') =>
  readHarborTask(
    treeOf({
      'task.toml': `[agent]\nuser = "root"\n[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n${environment}[grading]\nsandbox = "fresh"\n`,
      'instruction.md': 'Do it.\n',
      'environment/workspace/answer': '4\n',
      'tests/test.sh': `${test}\n`,
    }),
  );
const agent = { files: { answer: '5\n' } };

describe('a container that ends in an evaluation', () => {
  let pipeline: Pipeline;
  before(async () => {
    pipeline = await createPipeline('docker');
  });
  after(() => pipeline?.[Symbol.asyncDispose]());

  it("is retried twice, and is then the fault of the task, if the agent's work was not in it yet", async () => {
    const task = taskOf(`hidden_tests = ["${end}"]\n`);
    for (const attempt of [1, 2]) {
      await assert.rejects(pipeline.evaluate(task, agent, attempt), {
        type: 'SandboxUnavailable',
        message: /before the agent's work was in it/,
      });
    }
    await assert.rejects(pipeline.evaluate(task, agent, 3), {
      type: 'SetupFailed',
      message: /before the agent's work was in it.*, in attempt 3; look at its memory limit/,
    });
  });

  it('is the doing of the work that is in it', async () => {
    const { kind, flags } = await pipeline.evaluate(taskOf('', 'sh ./answer'), { files: { answer: `${end}\n` } });
    assert.equal(kind, 'no-reward');
    assert.deepEqual(
      flags?.map(({ trick }) => trick),
      ['exit', 'limit'],
    );
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type Pipeline, type ScriptedAgent } from './pipeline.ts';

/** The ways in which tests get an agent's work. */
const ways = ['fresh', 'snapshot', 'same'] as const;
type Way = (typeof ways)[number];

function taskOf(way: Way, test: string): HarborTask {
  return readHarborTask(
    treeOf({
      'task.toml': `[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n[grading]\nsandbox = "${way}"\n`,
      'instruction.md': 'Answer.\n',
      'environment/workspace/notes.txt': 'nothing\n',
      'tests/test.sh': `${test}\n`,
    }),
  );
}

/** Tests whose reward is what a file says, and 0 without it. */
const copied = (path: string): string =>
  `if [ -e ${path} ]; then cat ${path}; else echo 0; fi >/logs/verifier/reward.txt`;
const answered = copied('/tests/answer.txt');
const left = copied('/tmp/left');
const leaves = { script: 'echo nan >/tmp/left' };
const invalid = 'echo nan >/logs/verifier/reward.txt';

describe('an invalid reward', () => {
  let pipeline: Pipeline;
  before(async () => {
    pipeline = await createPipeline('local');
  });
  after(() => pipeline?.[Symbol.asyncDispose]());

  const kindOf = async (way: Way, test: string, agent: ScriptedAgent): Promise<string> => {
    const task = taskOf(way, test);
    const { kind, flags = [] } =
      way === 'same' ? (await pipeline.runInPlace(task, agent)).verdict : await pipeline.evaluate(task, agent);
    assert.deepEqual(
      flags.map(({ trick }) => trick),
      ['reward-file'],
    );
    return kind;
  };

  for (const way of ways) {
    it(`is worth 0 if the agent answered it, and tests get its work by ${way}`, async () => {
      assert.equal(await kindOf(way, answered, { answer: 'nan' }), 'no-reward');
      assert.equal(await kindOf(way, answered, { answer: '2', files: { 'notes.txt': 'two\n' } }), 'no-reward');
    });

    it(`is the fault of a task whose tests always write one, and get the work by ${way}`, async () => {
      for (const agent of [{}, { answer: '1', ...leaves }]) {
        await assert.rejects(kindOf(way, invalid, agent), { type: 'InvalidReward', message: /untouched workspace/ });
      }
    });
  }

  for (const way of ['snapshot', 'same'] as const) {
    it(`is worth 0 if it comes from a file that no diff holds, which tests get by ${way}`, async () => {
      assert.equal(await kindOf(way, left, leaves), 'no-reward');
    });
  }

  it('is the fault of a task whose environment gave it', async () => {
    const { description, ...files } = taskOf('fresh', answered);
    const task = { ...files, description: { ...description, hostTools: ['environment'] } };
    await assert.rejects(pipeline.evaluate(task, { answer: '5' }), { type: 'InvalidReward' });
  });
});

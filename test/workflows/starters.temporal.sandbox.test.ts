import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { locateTctl } from '../helpers/temporal/tctl.ts';

const run = promisify(execFile);
const task = 'generated:train/1/0';
const input = JSON.stringify({ task, agent: 'oracle' });

describe('a rollout started in different ways', () => {
  let rollouts: Rollouts;

  before(async () => {
    rollouts = await startRollouts();
  });
  after(() => rollouts?.close());

  /** Runs a command as an operator types it, without the tester's own Temporal settings. */
  const shell = (program: string, ...words: string[]) =>
    run(program, words, { env: { PATH: process.env.PATH, HOME: rollouts.home } });
  const temporal = (...words: string[]) =>
    shell(rollouts.server.cli, 'workflow', ...words, ...rollouts.server.cliFlags);

  it('is scored and describes itself when the client SDK starts it', async () => {
    const workflowId = 'by-sdk';
    await rollouts.start(workflowId, { task, agent: 'oracle' });
    await assertScored(workflowId);
  });

  it('is scored and describes itself when `temporal workflow start` starts it', async () => {
    const words = ['--type', 'rollout', '--task-queue', controlQueue, '--workflow-id', 'by-temporal'];
    await temporal('start', ...words, '--input', input);
    await assertScored('by-temporal');
  });

  it('is scored and describes itself when `tctl workflow start` starts it', async (context) => {
    const tctl = await findTctl();
    if ('missing' in tctl) return context.skip(tctl.missing);
    const where = ['--address', rollouts.server.address, '--namespace', rollouts.server.namespace];
    const words = ['--taskqueue', controlQueue, '--workflow_type', 'rollout', '--workflow_id', 'by-tctl'];
    await shell(tctl.path, ...where, 'workflow', 'start', ...words, '--input', input);
    await assertScored('by-tctl');
  });

  it('fails at once for an invalid input, naming the field, what was expected and the value', async () => {
    const words = ['--type', 'rollout', '--task-queue', controlQueue, '--workflow-id', 'bad'];
    const bad = temporal('execute', ...words, '--input', JSON.stringify({ task, maxTurns: 'many' }));
    await assert.rejects(bad, ({ stdout }: { stdout: string }) => {
      assert.match(stdout, /rollout: maxTurns: expected a whole number from 1 to 100000 turns, got "many"/);
      return true;
    });
    const { events } = await rollouts.client.workflow.getHandle('bad').fetchHistory();
    const tasks = events?.filter((event) => event.workflowTaskCompletedEventAttributes);
    const activities = events?.filter((event) => event.activityTaskScheduledEventAttributes);
    assert.deepEqual([tasks?.length, activities], [1, []]);
  });

  async function assertScored(workflowId: string): Promise<void> {
    const handle = rollouts.client.workflow.getHandle(workflowId);
    const { outcome, reward } = await handle.result();
    assert.deepEqual([outcome, reward], ['scored', 1]);
    const { typedSearchAttributes: found } = await handle.describe();
    const { task: taskKey, agent, outcome: outcomeKey, reward: rewardKey } = searchAttributes;
    const described = [found.get(taskKey), found.get(agent), found.get(outcomeKey), found.get(rewardKey)];
    assert.deepEqual(described, [task, 'oracle', 'scored', 1]);
  }
});

/** Builds tctl. Only a machine without Go may lack it. */
async function findTctl(): Promise<{ readonly path: string } | { readonly missing: string }> {
  try {
    return await locateTctl({ env: process.env, progress: (line) => console.error(line) });
  } catch (error) {
    const hasGo = await run('go', ['version']).then(
      () => true,
      () => false,
    );
    if (hasGo) throw error;
    return { missing: 'no `go` on PATH to build tctl with' };
  }
}

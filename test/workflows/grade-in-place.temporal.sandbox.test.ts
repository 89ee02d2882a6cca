import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeReport, RegradeRequest, RegradeResult } from '../../workflows/contracts/regrade.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

const toml = (grading: string): string =>
  `[environment]\ndocker_image = "temper-tasks:bookworm"\nmemory_mb = 512\nstorage_mb = 256\n[grading]\n${grading}\n`;
const files = {
  solve: 'echo right >/tmp/answer',
  test: '[ "$(cat /tmp/answer)" = right ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n',
};

describe("a task that is graded in the agent's own sandbox", () => {
  let rollouts: Rollouts;
  let root: string;
  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks')] }));
    root = join(rollouts.home, 'tasks');
  });
  after(() => rollouts?.close());

  it('is judged by what the agent left anywhere, once, and is left out of a regrade by name', async () => {
    const task = await writeHarborTask(root, 'same', { ...files, toml: toml('sandbox = "same"') });
    const run = (agent: string) => rollouts.run(`same-${agent}`, { task, agent, sandbox: 'local' });
    const [oracle, nop] = await Promise.all([run('oracle'), run('nop')]);
    for (const [result, reward] of [[oracle, 1] as const, [nop, 0] as const]) {
      assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', reward, 1], JSON.stringify(result));
      assert.equal(result.verdict?.exposure, 'same-sandbox');
      const { evaluate = Number.NaN } = result.stageSeconds;
      const { sandboxSeconds = {}, evaluationSeconds } = result.cost ?? {};
      assert.equal(evaluationSeconds, 0, 'it is a part of the time of the sandbox');
      assert.ok((sandboxSeconds.local ?? 0) >= evaluate);
    }
    assert.deepEqual(await rollouts.sandboxes(), []);
    const handle = await rollouts.client.workflow.start<(request: RegradeRequest) => Promise<RegradeResult>>(
      'regrade',
      {
        taskQueue: controlQueue,
        workflowId: 'again',
        args: [{ rollouts: ['same-oracle'] }],
      },
    );
    const { states, report } = await handle.result();
    assert.equal(states['left-out'], 1);
    const { rows } = (await rollouts.store.getJson(report.digest)) as RegradeReport;
    assert.match(rows[0]?.why ?? '', /agent's own sandbox, which is gone/);
  });

  it('is refused where its tests could not reach the processes that the agent leaves', async () => {
    const task = await writeHarborTask(root, 'kept', {
      ...files,
      toml: toml('sandbox = "same"\nkeep_processes = true'),
    });
    const { outcome, failure } = await rollouts.run('kept', { task, agent: 'oracle', sandbox: 'local' });
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'UnsupportedTask', 'provisionSandbox']);
    assert.match(failure?.message ?? '', /keep_processes/);
  });
});

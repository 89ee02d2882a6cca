import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeReport, RegradeRequest, RegradeResult } from '../../workflows/contracts/regrade.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

const toml =
  '[environment]\ndocker_image = "temper-tasks:bookworm"\nmemory_mb = 512\nstorage_mb = 256\n[grading]\nsandbox = "snapshot"\n';
export const carriedTask = {
  toml,
  solve: 'mkdir -p ~/.config && echo right >~/.config/answer',
  test: '[ "$(cat /home/agent/.config/answer)" = right ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n',
};

/** Checks rollouts in sandboxes of a kind whose tests get a snapshot. */
export function snapshotRollouts(kind: SandboxKind, optionsIn: NonNullable<Parameters<typeof startRollouts>[0]>): void {
  describe(`a task whose tests get all that the agent changed in its ${kind} sandbox`, () => {
    let rollouts: Rollouts;
    before(async () => {
      rollouts = await startRollouts((home) => ({
        taskRoots: [join(home, 'tasks')],
        ...optionsIn(home),
      }));
    });
    after(() => rollouts?.close());

    it('is judged in a fresh sandbox, and again from the store by a regrade', async () => {
      const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'carried', carriedTask);
      const run = (agent: string) => rollouts.run(`carried-${agent}`, { task, agent, sandbox: kind });
      const [oracle, nop] = await Promise.all([run('oracle'), run('nop')]);
      for (const [result, reward] of [[oracle, 1] as const, [nop, 0] as const]) {
        assert.deepEqual([result.outcome, result.reward, result.epochs], ['scored', reward, 1], JSON.stringify(result));
        assert.equal(result.verdict?.exposure, 'snapshot');
        assert.equal(result.snapshot?.kind, kind);
      }
      assert.deepEqual(await rollouts.sandboxes(), []);
      assert.equal((await regrade(rollouts, ['carried-oracle', 'carried-nop'])).same, 2);
    });

    it('is one that does not say where its tests run, and whose image has a Dockerfile', async () => {
      const task = await writeDefaultTask(join(rollouts.home, 'tasks'));
      const result = await rollouts.run('default', { task, agent: 'oracle', sandbox: kind });
      assert.deepEqual([result.reward, result.verdict?.exposure, result.snapshot?.kind], [1, 'snapshot', kind]);
      assert.equal((await regrade(rollouts, ['default'])).same, 1);
    });
  });
}

/** Writes a task as Harbor has them: with a Dockerfile, and without a word about where its tests run. */
export async function writeDefaultTask(root: string): Promise<string> {
  const address = await writeHarborTask(root, 'default', {
    ...carriedTask,
    toml: '[environment]\nmemory_mb = 512\nstorage_mb = 256\n',
  });
  const dockerfile = 'FROM temper-tasks:bookworm\nCOPY workspace /workspace\nWORKDIR /workspace\n';
  await writeFile(join(root, 'default/environment/Dockerfile'), dockerfile);
  return address;
}

/** Grades rollouts again, and returns how many of them have which state. */
export async function regrade(
  { client, store }: Pick<Rollouts, 'client' | 'store'>,
  rollouts: readonly string[],
): Promise<RegradeResult['states']> {
  const handle = await client.workflow.start<(request: RegradeRequest) => Promise<RegradeResult>>('regrade', {
    taskQueue: controlQueue,
    workflowId: `again-${rollouts.join('-')}`,
    args: [{ rollouts: [...rollouts] }],
  });
  const { states, report } = await handle.result();
  const { rows } = (await store.getJson(report.digest)) as RegradeReport;
  assert.equal(rows.length, rollouts.length, JSON.stringify(rows));
  return states;
}

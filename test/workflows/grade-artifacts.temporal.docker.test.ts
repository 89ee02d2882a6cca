import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeReport, RegradeRequest, RegradeResult } from '../../workflows/contracts/regrade.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

const files = {
  toml: 'artifacts = ["/tmp/out"]\n[environment]\ndocker_image = "temper-tasks:bookworm"\nmemory_mb = 512\nstorage_mb = 256\n[verifier]\nenvironment_mode = "separate"\n',
  solve: 'mkdir -p /tmp/out && echo right >/tmp/out/answer',
  test: 'grep -qx right /tmp/out/answer && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n',
  others: { 'tests/Dockerfile': 'FROM temper-tasks:bookworm\nCOPY . /tests\n' },
};

describe('a task whose tests are in an image of their own', () => {
  let rollouts: Rollouts;
  before(async () => {
    rollouts = await startRollouts((home) => ({
      taskRoots: [join(home, 'tasks')],
      provider: createDockerProvider({ stack: 'test-stack' }),
    }));
  });
  after(() => rollouts?.close());

  it('is judged by its artifacts, and again from the store by a regrade', async () => {
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'artifacts', files);
    const run = (agent: string) => rollouts.run(`artifacts-${agent}`, { task, agent, sandbox: 'docker' });
    const [oracle, nop] = await Promise.all([run('oracle'), run('nop')]);
    for (const [{ outcome, reward, snapshot }, expected, entries] of [[oracle, 1, 3] as const, [nop, 0, 1] as const]) {
      assert.deepEqual([outcome, reward, snapshot?.entries], ['scored', expected, entries]);
    }
    const handle = await rollouts.client.workflow.start<(request: RegradeRequest) => Promise<RegradeResult>>(
      'regrade',
      {
        taskQueue: controlQueue,
        workflowId: 'again',
        args: [{ rollouts: ['artifacts-oracle', 'artifacts-nop'] }],
      },
    );
    const { states, report } = await handle.result();
    const { rows } = (await rollouts.store.getJson(report.digest)) as RegradeReport;
    assert.equal(states.same, 2, JSON.stringify(rows));
    assert.deepEqual(await rollouts.sandboxes(), []);
  });

  it('gets the files that a compose file beside the tests mounts into their container', async () => {
    const mount = '{ type: bind, source: ./test.sh, target: /tests/test.sh, read_only: true }';
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'mounted', {
      ...files,
      toml: `${files.toml}[verifier.environment]\ndocker_image = "temper-tasks:bookworm"\n`,
      others: { 'tests/docker-compose.yaml': `services:\n  main:\n    volumes:\n      - ${mount}\n` },
    });
    const run = (agent: string) => rollouts.run(`mounted-${agent}`, { task, agent, sandbox: 'docker' });
    const judged = (await Promise.all([run('oracle'), run('nop')])).map(({ outcome, reward }) => [outcome, reward]);
    assert.deepEqual(judged, [
      ['scored', 1],
      ['scored', 0],
    ]);
  });

  it('is worth 0 if an artifact makes its tests write an invalid reward', async () => {
    const test = 'cat /tmp/out/reward >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n';
    const solve = 'mkdir -p /tmp/out && echo nan >/tmp/out/reward';
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'nan', { ...files, solve, test });
    const { outcome, reward, verdict } = await rollouts.run('nan', { task, agent: 'oracle', sandbox: 'docker' });
    assert.deepEqual([outcome, reward, verdict?.kind], ['scored', 0, 'no-reward']);
  });

  it('is invalid before its agent starts if the image of its tests cannot be built', async () => {
    const others = {
      'tests/Dockerfile': 'FROM temper-tasks:bookworm\nRUN echo no compiler >&2; exit 7\nCOPY . /tests\n',
    };
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'unbuilt', { ...files, others });
    const { outcome, failure } = await rollouts.run('unbuilt', { task, agent: 'oracle', sandbox: 'docker' });
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'BuildFailed', 'prepareImage']);
    assert.match(failure?.message ?? '', /^could not build the image of task unbuilt, its tests.*no compiler/);
  });
});

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RunStatus } from '../../workflows/contracts/run.ts';
import { bundleChanged, withoutHeartbeats } from '../helpers/temporal/changed-workflows.ts';
import { evaluationSeconds } from '../helpers/temporal/script.ts';
import { type ScriptedWorkers, startScriptedWorkers } from '../helpers/temporal/scripted-activities.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

/* One evaluation at a time. The first one lasts until all others wait, in the reverse of the order that they should have. */
const groups = 8;
const rollouts = 2 * groups;
const attempts = 4;
const limitMs = 180_000;

let home: string;
let server: TestServer;
let workers: ScriptedWorkers;
const allWait = Promise.withResolvers<void>();
/** The run or sweep of each evaluation, in the order in which they began. */
const began: string[] = [];

before(async () => {
  home = await mkdtemp(join(tmpdir(), 'temper-order-'));
  server = await startTestServer();
  const script = {
    reward: (id: string) => Number(id.endsWith('0')),
    evaluate: async (id: string) => {
      began.push(id.slice(0, id.indexOf('/')));
      await allWait.promise;
    },
  };
  const workflowBundle = await bundleChanged('activity-options.ts', withoutHeartbeats);
  workers = await startScriptedWorkers(server, home, script, { workflowBundle, evaluationsAtOnce: 1 });
});
after(async () => {
  allWait.resolve();
  await workers?.close();
  await server?.close();
  await rm(home, { recursive: true, force: true });
});

/** The rollouts that wait for their evaluation or are in it. */
async function evaluating(): Promise<number> {
  let found = 0;
  const query = 'WorkflowType="rollout" AND ExecutionStatus="Running"';
  for await (const { workflowId } of server.client.workflow.list({ query })) {
    const { raw } = await server.client.workflow.getHandle(workflowId).describe();
    if (raw.pendingActivities?.some(({ activityType }) => activityType?.name === 'evaluate')) found += 1;
  }
  return found;
}

it('gives a free place for an evaluation to runs before sweeps, and to runs by their weights', async () => {
  let expected = 0;
  const start = async (type: string, workflowId: string, input: object, evaluations: number) => {
    const handle = await server.client.workflow.start(type, { taskQueue: controlQueue, workflowId, args: [input] });
    expected += evaluations;
    await until(
      async () => workers.released.length === expected && began.length === 1 && (await evaluating()) === expected,
      limitMs,
    );
    return handle;
  };
  const train = (weight: number) => ({
    tasks: 'generated:train/1',
    steps: 1,
    groupsPerStep: groups,
    rolloutsPerGroup: 2,
    maxStaleness: 0,
    weight,
  });
  const open = [
    await start('evaluationSweep', 'sweep', { tasks: 'set', count: 1, attempts }, attempts),
    await start('trainingRun', 'one', train(1), rollouts),
    await start('trainingRun', 'three', train(3), rollouts),
  ];
  allWait.resolve();
  const [, run]: readonly RunStatus[] = await Promise.all(open.map((one) => one.result()));

  assert.equal(began.length, attempts + 2 * rollouts);
  const order = began.join(' ');
  assert.deepEqual([began[0], ...began.slice(1 - attempts)], Array(attempts).fill('sweep'), order);
  // For as long as both runs have evaluations that wait. A task that the server had already read may come out of turn.
  const both = began.slice(1, 1 + rollouts);
  const ofThree = both.filter((one) => one === 'three').length;
  assert.equal(run?.cost?.rollouts.scored?.evaluationSeconds, rollouts * evaluationSeconds, 'no wait is billed');
  assert.ok(Math.abs(ofThree - (rollouts * 3) / 4) <= 1, `${ofThree} of ${rollouts}: ${order}`);
});

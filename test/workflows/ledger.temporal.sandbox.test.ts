import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { until } from '../helpers/until.ts';

const request = { task: 'generated:train/1/0', agent: 'oracle', sandbox: 'local' } as const;
/** The time that each failing creation of a sandbox takes. */
const failingMs = 500;
const heldMs = 4_000;

describe('the cost of a rollout', () => {
  let rollouts: Rollouts;
  /** The failures of the next sandboxes for evaluations. */
  const failures: TemperFailure[] = [];
  /** The time of all attempts at evaluations. */
  let evaluatingMs = 0;
  let beforeProvisioning = async (): Promise<void> => {};

  before(async () => {
    rollouts = await startRollouts((home) => {
      const spawner = createHelperSpawner();
      const local = createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack', spawner });
      const ensure: typeof local.ensure = async (spec, signal) => {
        const failure = spec.name.includes('-evaluation-') ? failures.shift() : undefined;
        if (failure === undefined) return local.ensure(spec, signal);
        await delay(failingMs);
        throw failure;
      };
      return {
        lanes: 1,
        provider: { ...local, ensure },
        stages: (real) => ({
          ...real,
          async evaluate(input) {
            const beganMs = performance.now();
            return real.evaluate(input).finally(() => {
              evaluatingMs += performance.now() - beganMs;
            });
          },
          async provisionSandbox(input) {
            await beforeProvisioning();
            return real.provisionSandbox(input);
          },
        }),
      };
    });
  });
  after(() => rollouts?.close());

  it('counts the attempts at its evaluation that failed', async () => {
    evaluatingMs = 0;
    const away = new TemperFailure('SandboxUnavailable', 'the test has no sandbox for now');
    failures.push(away, away, away);
    const { outcome, cost } = await rollouts.run('failed-attempts', request);
    assert.deepEqual([outcome, failures.length], ['scored', 0]);
    const seconds = cost?.evaluationSeconds ?? 0;
    assert.ok(seconds > (3 * failingMs) / 1000 && seconds > 0.8 * (evaluatingMs / 1000), `${seconds} ${evaluatingMs}`);
  });

  it('counts an evaluation that failed for good', async () => {
    failures.push(new TemperFailure('UnsupportedTask', 'the test offers no such sandbox'));
    const { outcome, cost } = await rollouts.run('failed', request);
    assert.equal(outcome, 'invalid-task');
    assert.ok((cost?.evaluationSeconds ?? 0) >= failingMs / 1000, JSON.stringify(cost));
  });

  it("counts no wait for a place in its host's lane of provisioning", async () => {
    let first = true;
    beforeProvisioning = async () => {
      if (!first) return;
      first = false;
      await until(async () => (await waiting()).length === 1);
      await delay(heldMs);
    };
    const ends = await Promise.all(['one', 'two'].map((id) => rollouts.run(`waits-${id}`, request)));
    const [shorter, longer] = ends
      .map(({ cost, stageSeconds }) => ({ cost, waited: stageSeconds.provisionSandbox ?? 0, stageSeconds }))
      .toSorted((a, b) => a.waited - b.waited);
    assert.ok(shorter !== undefined && longer !== undefined);
    const {
      provisionSandbox = 0,
      startAgent = 0,
      awaitAgent = 0,
      captureDiff = 0,
      releaseSandbox = 0,
    } = longer.stageSeconds;
    const inStages = provisionSandbox + startAgent + awaitAgent + captureDiff + releaseSandbox;
    const counted = longer.cost?.sandboxSeconds.local ?? 0;
    assert.ok(counted > 0 && counted < inStages - heldMs / 2000, `${counted} ${JSON.stringify(longer.stageSeconds)}`);
  });

  /** Lists the rollouts whose provisioning no worker has taken. */
  async function waiting(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const workflowId of ['waits-one', 'waits-two']) {
      const { raw } = await rollouts.client.workflow.getHandle(workflowId).describe();
      const [one] = (raw.pendingActivities ?? []).filter(
        ({ activityType }) => activityType?.name === 'provisionSandbox',
      );
      if (one?.state === 1) found.push(workflowId);
    }
    return found;
  }
});

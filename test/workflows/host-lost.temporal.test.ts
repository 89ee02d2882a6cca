import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import type { AdoptSandbox } from '../../activities/interfaces/host.ts';
import { tellHostLost } from '../../infra/temporal/tell-host-lost.ts';
import { rolloutStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { ReaperResult } from '../../workflows/reaper.ts';
import { bundleChanged } from '../helpers/temporal/changed-workflows.ts';
import { type ScriptedStack, startScriptedStack } from '../helpers/temporal/scripted-stack.ts';
import { createTwiceLostHost } from '../helpers/temporal/twice-lost-host.ts';
import { until } from '../helpers/until.ts';

describe('a host that is declared lost', () => {
  let stack: ScriptedStack;
  before(async () => {
    // The reaper of a host that is away finds out within a second.
    const workflowBundle = await bundleChanged('activity-options.ts', (source) =>
      source.replace(/(reapHost: \{\s*scheduleToStartTimeout: )'2m'/, "$1'1s'"),
    );
    stack = await startScriptedStack({ workflowBundle });
  });
  after(() => stack?.close());

  it('is left at once by its rollout, which does not wait for its clean-up and begins again', async () => {
    let agents = 0;
    stack.script.agent = async () => {
      agents += 1;
      if (agents === 1) await new Promise<never>(() => {});
    };
    const { client } = stack.server;
    const args = [{ task: 'generated:test/1/0' }];
    const handle = await client.workflow.start('rollout', { taskQueue: controlQueue, workflowId: 'left', args });
    await until(async () => agents === 1 && (await handle.query(rolloutStatusQuery)).host === 'scripted');
    assert.equal(await tellHostLost(client, 'another', 1), 0);
    // The list of workflows follows a moment later.
    await until(async () => (await tellHostLost(client, 'scripted', 1)) === 1);
    const result: RolloutResult = await handle.result();
    assert.deepEqual([result.outcome, result.epochs, agents], ['scored', 2, 2]);
    // What the first session used went with its host.
    assert.deepEqual([result.cost?.promptTokens, result.cost?.incomplete], [4, true]);
    assert.deepEqual(stack.workers.released, [result.rollout]);
  });

  it('keeps a rollout that a later life of it has placed, since only an earlier one was lost', async () => {
    const { client } = stack.server;
    for (const [lost, epochs] of [
      [1, 1],
      [2, 2],
      [3, 2],
    ] as const) {
      const gate = Promise.withResolvers<void>();
      let agents = 0;
      const agent = (): Promise<void> => {
        agents += 1;
        return agents === 1 ? gate.promise : Promise.resolve();
      };
      stack.script = { reward: () => 1, token: 'scripted/2', agent };
      const options = { taskQueue: controlQueue, workflowId: `lost-${lost}`, args: [{ task: 'generated:test/1/0' }] };
      const handle = await client.workflow.start('rollout', options);
      await until(() => agents === 1);
      // The list of workflows follows a moment later.
      await until(async () => (await tellHostLost(client, 'scripted', lost)) === 1);
      // A query waits until the signal has been handled.
      await handle.query(rolloutStatusQuery);
      if (epochs === 1) gate.resolve();
      const result: RolloutResult = await handle.result();
      gate.resolve();
      assert.deepEqual([result.outcome, result.epochs, agents], ['scored', epochs, epochs], `generation ${lost}`);
    }
  });

  it('leaves its sandbox to a host that adopts it, and its rollout begins again if none does', async () => {
    const host = createTwiceLostHost();
    stack.script = { reward: () => 1, ...host.script };
    const { client } = stack.server;
    const args = [{ task: 'generated:test/1/0' }];
    const handle = await client.workflow.start('rollout', { taskQueue: controlQueue, workflowId: 'adopted', args });
    await host.lose(client);
    const result: RolloutResult = await handle.result();
    assert.deepEqual([result.outcome, result.epochs, result.adoptions, host.agents()], ['scored', 2, 1, 3]);
    assert.match(JSON.stringify(result), /no host adopted the sandbox: its journal is gone/);
  });

  it('leaves the release of its sandbox to the host that adopts the session', async () => {
    let adopted = false;
    // Both stages fail and wait for their next attempts when the host is lost.
    const failUntilAdopted = async (): Promise<void> => {
      if (adopted) return;
      throw ApplicationFailure.create({ message: 'the host is about to be lost', nextRetryDelay: '10m' });
    };
    const adopt = () => {
      adopted = true;
      return { host: 'scripted', token: 'scripted/2' };
    };
    stack.script = { reward: () => 1, kind: 'e2b', adopt, seal: failUntilAdopted, release: failUntilAdopted };
    const { client } = stack.server;
    const before = stack.workers.released.length;
    const args = [{ task: 'generated:test/1/0' }];
    const handle = await client.workflow.start('rollout', { taskQueue: controlQueue, workflowId: 'sealing', args });
    await until(async () => {
      const pending = (await handle.describe()).raw.pendingActivities ?? [];
      return pending.length === 2 && pending.every(({ attempt }) => attempt === 2);
    });
    // The list of workflows follows a moment later.
    await until(async () => (await tellHostLost(client, 'scripted', 1)) > 0);
    const result: RolloutResult = await handle.result();
    assert.deepEqual([result.outcome, result.epochs, result.adoptions], ['scored', 1, 1]);
    assert.deepEqual(stack.workers.released.slice(before), [result.rollout]);
  });

  it('leaves the release of its sandbox to another host, which needs no journal, before the tests run', async () => {
    const asked: boolean[] = [];
    let releasedBefore: readonly string[] = [];
    const release = async (): Promise<void> => {
      if (asked.length > 0) return;
      throw ApplicationFailure.create({ message: 'the host is about to be lost', nextRetryDelay: '10m' });
    };
    const adopt = ({ usesModel }: AdoptSandbox) => {
      asked.push(usesModel);
      return { host: 'scripted', token: 'scripted/2' };
    };
    const before = stack.workers.released.length;
    const evaluate = async (): Promise<void> => {
      releasedBefore = stack.workers.released.slice(before);
    };
    stack.script = { reward: () => 1, kind: 'e2b', adopt, release, evaluate };
    const { client } = stack.server;
    const args = [{ task: 'generated:test/1/0' }];
    const handle = await client.workflow.start('rollout', { taskQueue: controlQueue, workflowId: 'releasing', args });
    await until(async () => {
      const pending = (await handle.describe()).raw.pendingActivities ?? [];
      return pending.length === 1 && pending[0]?.activityType?.name === 'releaseSandbox' && pending[0]?.attempt === 2;
    });
    // The list of workflows follows a moment later.
    await until(async () => (await tellHostLost(client, 'scripted', 1)) > 0);
    const result: RolloutResult = await handle.result();
    assert.deepEqual([result.outcome, result.epochs, result.adoptions, asked], ['scored', 1, 1, [false]]);
    assert.deepEqual(releasedBefore, [result.rollout]);
  });

  it('is not asked about for adoption if it shares its journals with no other, and its rollout begins again at once', async () => {
    let agents = 0;
    const asked: string[] = [];
    stack.script = {
      reward: () => 1,
      kind: 'e2b',
      unadoptable: true,
      adopt: () => {
        asked.push('adopt');
        return { refused: 'no host should be asked' };
      },
      agent: async () => {
        agents += 1;
        if (agents === 1) await new Promise<never>(() => {});
      },
    };
    const { client } = stack.server;
    const args = [{ task: 'generated:test/1/0' }];
    const handle = await client.workflow.start('rollout', { taskQueue: controlQueue, workflowId: 'alone', args });
    await until(() => agents === 1);
    // The list of workflows follows a moment later.
    await until(async () => (await tellHostLost(client, 'scripted', 1)) > 0);
    const result: RolloutResult = await handle.result();
    assert.deepEqual([result.outcome, result.epochs, result.adoptions, asked], ['scored', 2, undefined, []]);
    assert.match(
      JSON.stringify(result),
      /no host adopted the sandbox: host scripted shared its journals with no other/,
    );
  });

  it('is found by its reaper, whose part there no worker takes', async () => {
    const asked: string[] = [];
    stack.script.isAlive = (host) => {
      asked.push(host);
      return false;
    };
    const { client } = stack.server;
    const args = [{ host: 'gone' }];
    const options = { taskQueue: controlQueue, workflowId: 'reaper-of-gone', args };
    const result: ReaperResult = await client.workflow.execute('reaper', options);
    assert.deepEqual([asked, result.hostLost], [['gone'], true]);
    stack.script.isAlive = () => true;
    await assert.rejects(client.workflow.execute('reaper', options), /Workflow execution failed/);
  });

  it('is found by its reaper also while the list of workflows is away', async () => {
    const listed = Promise.withResolvers<never>();
    stack.script.isAlive = () => false;
    stack.script.orphans = () => listed.promise;
    const { client } = stack.server;
    const options = { taskQueue: controlQueue, workflowId: 'reaper-without-list', args: [{ host: 'gone' }] };
    const handle = await client.workflow.start('reaper', options);
    await until(async () => JSON.stringify(await handle.fetchHistory()).includes('inspectHost'));
    listed.reject(ApplicationFailure.nonRetryable('the list of workflows is away', 'InternalError'));
    const { hostLost, rollouts }: ReaperResult = await handle.result();
    assert.deepEqual([hostLost, rollouts], [true, []]);
    delete stack.script.orphans;
    stack.script.isAlive = () => true;
  });
});

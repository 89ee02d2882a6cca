import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathsBelow } from '../../../infra/paths.ts';
import { openStackId } from '../../../infra/stack.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { refuseOtherStack, requireNamespace, type StackInNamespace } from '../../../infra/temporal/stack-namespace.ts';
import { takeNamespace } from '../../../workers/upkeep.ts';
import { controlQueue, earlierControlQueues } from '../../../workflows/contracts/queues.ts';
import { startTestServer, type TestServer } from '../../helpers/temporal/temporal.ts';
import { until } from '../../helpers/until.ts';

describe('a stack and its namespace', () => {
  let servers: readonly [TestServer, TestServer];
  let root: string;
  before(async () => {
    servers = [await startTestServer(), await startTestServer()];
    root = await mkdtemp(join(tmpdir(), 'temper-namespace-'));
  });
  after(async () => {
    for (const server of servers ?? []) await server.close();
    await rm(root, { recursive: true, force: true });
  });

  const stays = { mayMove: false };
  async function newStack({ client }: TestServer): Promise<StackInNamespace> {
    const home = await mkdtemp(join(root, 'home-'));
    const objects = createDirectory(home);
    return { stack: await openStackId(pathsBelow(home), objects), objects, client };
  }

  it('belong to each other from the first start on', async () => {
    const [here, there] = servers;
    const first = await newStack(here);
    await takeNamespace(first, stays);
    await requireNamespace(first, stays);

    const second = await newStack(here);
    await assert.rejects(requireNamespace(second, { mayMove: true }), {
      message: new RegExp(
        `namespace .* belongs to stack ${first.stack}, and the store .* to stack ${second.stack}; give`,
      ),
    });

    const moved = { ...first, client: there.client };
    await assert.rejects(
      requireNamespace(moved, stays),
      /or run `temper doctor --register` once if the stack has moved/,
    );
    await refuseOtherStack(first);
    await assert.rejects(refuseOtherStack(second), /belongs to stack .*, and the store .* to stack/);
    await assert.rejects(refuseOtherStack(moved), /belongs to the Temporal namespace with the id/);
    await refuseOtherStack(await newStack(there));
    await requireNamespace(moved, { mayMove: true });
    await requireNamespace(moved, stays);
    await assert.rejects(requireNamespace(first, stays), /belongs to the Temporal namespace with the id/);
  });

  it('are refused as long as workflows of an earlier format are open there', async () => {
    const server = await startTestServer();
    try {
      const stack = await newStack(server);
      const { workflow } = server.client;
      for (const [number, taskQueue] of [...earlierControlQueues, controlQueue].entries())
        await workflow.start('rollout', { taskQueue, workflowId: `kept-${number}` });
      await until(async () => (await workflow.count('ExecutionStatus="Running"')).count > earlierControlQueues.length);
      await assert.rejects(takeNamespace(stack, stays), (error: Error) => {
        const { count = '', id = '' } =
          /has (?<count>\d+) open workflows .* such as (?<id>\S+):/.exec(error.message)?.groups ?? {};
        assert.deepEqual([count, id.startsWith('kept-')], [String(earlierControlQueues.length), true], error.message);
        return error.message.includes('`temporal workflow terminate');
      });
      for (const number of earlierControlQueues.keys()) await workflow.getHandle(`kept-${number}`).terminate();
      await until(() =>
        takeNamespace(stack, stays).then(
          () => true,
          () => false,
        ),
      );
    } finally {
      await server.close();
    }
  });

  it('are one to one, also where two stacks take a namespace at the same moment', async () => {
    const server = await startTestServer();
    try {
      const stacks = [await newStack(server), await newStack(server), await newStack(server)];
      const taken = await Promise.allSettled(stacks.map((one) => takeNamespace(one, stays)));
      const refused = taken.filter((one) => one.status === 'rejected');
      assert.equal(refused.length, 2, JSON.stringify(taken));
      for (const { reason } of refused)
        assert.match(String(reason), /belongs to stack .*; give each stack a namespace/);
    } finally {
      await server.close();
    }
  });
});

/**
 * Measures a regrade of many finished rollouts: `node test/scale/regrade.ts [cached rollouts] [uncached rollouts]`.
 *
 * A few rollouts are real; the others are copies of their records, under their own ids. Nearly all diffs have therefore
 * been evaluated before. With cached verdicts the script measures listing, reading, tally, history and report; without
 * them, on fewer rollouts, it measures the evaluations.
 */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { sweepRolloutId } from '../../workflows/contracts/ids.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RegradeRequest, RegradeResult } from '../../workflows/contracts/regrade.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { createFileRollouts } from '../helpers/store/file-store.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import type { OwnTestServer, TestServer } from '../helpers/temporal/temporal.ts';
import { residentMb, watchMemory } from './memory.ts';

const [count = 10_000, uncached = 200] = process.argv.slice(2).map(Number);
const seconds = (since: number): string => ((performance.now() - since) / 1000).toFixed(1);
const say = (text: string): void => console.log(text);

await using undo = new AsyncDisposableStack();
const rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks')], capacity: 2 }));
undo.defer(() => rollouts.close());
const real = await realRollouts(rollouts);

const startedAt = performance.now();
await replicate('many', count);
await replicate('some', uncached);
say(`${count + uncached} records in ${seconds(startedAt)} s, copies of ${real.length} real ones`);
await regrade('uncached', { run: 'some' }, uncached);
await regrade('cached', { run: 'many', reuseVerdicts: true, concurrency: 32 }, count);

/** Runs each task once solved and once unsolved. */
async function realRollouts({ home, run }: Rollouts): Promise<readonly { task: string; result: RolloutResult }[]> {
  const root = join(home, 'tasks');
  await mkdir(root);
  const made: { task: string; result: RolloutResult }[] = [];
  for (const name of ['one', 'two', 'three', 'four']) {
    const task = await writeHarborTask(root, name, { workspace: { 'answer.txt': 'wrong\n', 'name.txt': name } });
    for (const agent of ['oracle', 'nop']) {
      const result = await run(`real-${name}-${agent}`, { task, agent, sandbox: 'local' });
      assert.equal(result.outcome, 'scored', JSON.stringify(result));
      made.push({ task, result });
    }
  }
  return made;
}

async function replicate(run: string, copies: number): Promise<void> {
  const records = createFileRollouts(rollouts.home);
  const lane = async (from: number): Promise<void> => {
    for (let task = from; task < copies; task += 32) {
      const { result } = real[task % real.length] ?? assert.fail();
      const record = (await records.find(result)) ?? assert.fail();
      const workflowId = sweepRolloutId(run, '0123456789ab', { task, attempt: 0, retry: 0 });
      await records.write({ ...record, result: { ...result, workflowId } });
    }
  };
  await Promise.all(Array.from({ length: 32 }, (_, from) => lane(from)));
}

async function regrade(workflowId: string, request: RegradeRequest, expected: number): Promise<void> {
  const { client, server } = rollouts;
  const at = performance.now();
  const { pid } = ownServer(server).server();
  const memory = watchMemory([process.pid, pid]);
  const before = [residentMb(process.pid), residentMb(pid)];
  const result: RegradeResult = await client.workflow.execute('regrade', {
    taskQueue: controlQueue,
    workflowId,
    args: [request],
  });
  const wall = performance.now() - at;
  const most = memory.end();
  assert.deepEqual([result.rollouts, result.states.same], [expected, expected], JSON.stringify(result));
  const lengths: number[] = [];
  const sizes: number[] = [];
  for await (const { runId } of client.workflow.list({ query: `WorkflowId="${workflowId}"` })) {
    const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
    lengths.push(Number(raw.workflowExecutionInfo?.historyLength ?? 0));
    sizes.push(Number(raw.workflowExecutionInfo?.historySizeBytes ?? 0));
  }
  const perRollout = wall / expected;
  say(
    [
      `${workflowId}: ${expected} rollouts in ${(wall / 1000).toFixed(1)} s, ${perRollout.toFixed(1)} ms each (10,000: ${((perRollout * 10_000) / 60_000).toFixed(1)} min)`,
      `  executions ${lengths.length}; history at most ${Math.max(...lengths)} events, ${(Math.max(...sizes) / 1e6).toFixed(2)} MB; report ${(result.report.size / 1e6).toFixed(2)} MB`,
      `  memory: workers ${before[0]} → at most ${most[0]} MB, server ${before[1]} → at most ${most[1]} MB`,
    ].join('\n'),
  );
}

/** Narrows to a server that no other test shares, since its memory is measured. */
function ownServer(server: TestServer): OwnTestServer {
  if ('server' in server) return server as OwnTestServer;
  throw new Error('expected a Temporal server for this measurement alone: run the file without the test runner');
}

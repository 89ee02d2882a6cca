import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { Runtime, Worker } from '@temporalio/worker';
import type { Config } from '../../../infra/settings/config.ts';
import { bundleCode } from '../../../infra/temporal/bundle.ts';
import { connectWorker } from '../../../infra/temporal/connection.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { each } from '../measure.ts';
import { cpuMsOf, type MeasuredProcess } from './processes.ts';

/** The number of stages of a rollout of `nop`. */
export const emptyActivities = 9;
const taskQueue = 'bench-floor';

export interface EmptyActivities {
  empty(): Promise<void>;
}

/** A worker in this process whose workflows do nothing but run empty activities: what Temporal itself costs on this machine. */
export interface Floor {
  /** Runs workflows and returns the CPU time of the server and of this process in ms per workflow. */
  measure(workflows: number, concurrency: number): Promise<number>;
  close(): Promise<void>;
}

export async function openFloor(config: Config, client: Client, server: MeasuredProcess): Promise<Floor> {
  const silent = (): void => undefined;
  Runtime.install({ logger: { log: silent, trace: silent, debug: silent, info: silent, warn: silent, error: silent } });
  const { connection, close } = await connectWorker(temporalTarget(config));
  const activities: EmptyActivities = { empty: async () => undefined };
  const code = await bundleCode(join(import.meta.dirname, 'floor-workflow.ts'));
  const { namespace } = client.options;
  const worker = await Worker.create({ connection, namespace, taskQueue, workflowBundle: { code }, activities });
  const running = worker.run();
  const one = async (): Promise<void> => {
    const workflowId = `floor/${randomUUID()}`;
    await client.workflow.execute('emptyStages', { taskQueue, workflowId, args: [emptyActivities] });
  };
  await one();
  return {
    async measure(workflows, concurrency) {
      const serverBefore = cpuMsOf(server);
      const ownBefore = process.cpuUsage();
      await each(workflows, concurrency, one);
      const { user, system } = process.cpuUsage(ownBefore);
      return (cpuMsOf(server) - serverBefore + (user + system) / 1000) / workflows;
    },
    async close() {
      worker.shutdown();
      await running;
      await close();
    },
  };
}

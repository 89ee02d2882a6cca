import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client, WorkflowHandle } from '@temporalio/client';
import type { Host } from '../../../activities/host/host.ts';
import { createHelperSpawner } from '../../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import type { SandboxInfo, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../infra/store/store.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import type { RolloutRequest, RolloutResult } from '../../../workflows/contracts/rollout.ts';
import { startTestServer, type TestServer } from '../temporal/temporal.ts';
import { startTestWorkers, type TestWorkersOptions } from '../temporal/workers.ts';

/** A real server with workers for rollouts in local sandboxes, in a temporary home directory. */
export interface Rollouts {
  readonly home: string;
  readonly server: TestServer;
  readonly client: Client;
  readonly host: Host;
  start(workflowId: string, request: RolloutRequest): Promise<WorkflowHandle<() => Promise<RolloutResult>>>;
  /** Starts a rollout and waits for its end. */
  run(workflowId: string, request: RolloutRequest): Promise<RolloutResult>;
  readonly provider: SandboxProvider;
  readonly store: Store;
  /** Lists the sandboxes that exist now. */
  sandboxes(): Promise<readonly SandboxInfo[]>;
  close(): Promise<void>;
}

/** Starts server and workers. The options that differ from the defaults may depend on the home. */
export async function startRollouts(
  optionsIn: (home: string) => Partial<TestWorkersOptions> = () => ({}),
): Promise<Rollouts> {
  const home = await mkdtemp(join(tmpdir(), 'temper-rollouts-'));
  const server = await startTestServer();
  const provider = createLocalProvider({
    root: join(home, 'sandboxes'),
    stack: 'test-stack',
    spawner: createHelperSpawner(),
  });
  const workers = await startTestWorkers({ server, home, provider, ...optionsIn(home) });
  const start: Rollouts['start'] = (workflowId, request) =>
    server.client.workflow.start('rollout', { taskQueue: controlQueue, workflowId, args: [request] });
  return {
    home,
    server,
    client: server.client,
    host: workers.host,
    start,
    run(workflowId, request) {
      const result = start(workflowId, request).then((handle) => handle.result());
      // A test that fails before it awaits the result ends the rollout, whose rejection would be reported in place of its error.
      result.catch(() => undefined);
      return result;
    },
    provider,
    store: workers.store,
    sandboxes: () => provider.list('test-stack'),
    async close() {
      await workers.close();
      await server.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

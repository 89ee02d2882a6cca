import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../../activities/host/host.ts';
import { createTraceActivities } from '../../../activities/host/traces.ts';
import { createSlotTable } from '../../../infra/engine/replicas/slots.ts';
import { createReplicas } from '../../../infra/engine/replicas.ts';
import { createVllmEngine } from '../../../infra/engine/vllm.ts';
import { secretOf } from '../../../infra/gateway/secret.ts';
import type { HostTool } from '../../../infra/gateway/tools/host-tool.ts';
import { createToolbox } from '../../../infra/gateway/tools/toolbox.ts';
import type { Upstreams } from '../../../infra/gateway/upstream/upstreams.ts';
import { createBundles } from '../../../infra/harbor/bundle.ts';
import { cacheDirectory } from '../../../infra/process/cache.mjs';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import type { ChannelKind, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../infra/store/store.ts';
import { agentSandboxName } from '../../../workflows/contracts/ids.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import type { RolloutRequest, RolloutResult } from '../../../workflows/contracts/rollout.ts';
import { startScriptedVllm, type VllmState } from '../engine/scripted-vllm.ts';
import { startTestGateway, type TestGateway } from '../gateway/gateway.ts';
import { createFileStore } from '../store/file-store.ts';
import { startTestServer } from '../temporal/temporal.ts';
import { startTestWorkers } from '../temporal/workers.ts';

/** Whole rollouts of real agents in sandboxes, with a real server and gateway, and a function instead of the policy. */
export interface AgentRollouts {
  readonly home: string;
  readonly store: Store;
  readonly gateway: TestGateway;
  readonly provider: SandboxProvider;
  /** Runs a rollout and waits for its end. */
  roll(request: RolloutRequest): Promise<AgentRollout>;
  /** Ends the workers, whose agents continue, and starts others. */
  replaceWorkers(): Promise<void>;
  close(): Promise<void>;
}

export interface AgentRollout {
  readonly result: RolloutResult;
  readonly log: string;
  /** The name of the sandbox that the agent had. */
  readonly sandbox: string;
  /** Result, agent log and gateway events, for the message of a failed assertion. */
  readonly evidence: string;
}

export interface AgentRolloutsOptions {
  /** Default: Docker. */
  readonly providerIn?: (home: string) => SandboxProvider;
  /** The directory below the home from which tasks may be read. */
  readonly taskRoot?: string;
  /** Upstream models that answer instead of the function. */
  readonly upstreams?: Upstreams;
  /** Host tools beside temper's own. Default: none. */
  readonly hostTools?: readonly HostTool[];
  /** The state of the engine. With it, the engine is probed as in production. Default: it is ready, and not probed. */
  readonly engineState?: VllmState;
  /** The way of the model calls. Default: sockets. */
  readonly channel?: ChannelKind;
  /** The time for which relays hold model calls over a stream. Default: a minute. */
  readonly holdMs?: number;
  /** The network that tasks may have. Default: none. */
  readonly network?: Pick<Host['network'], 'cap' | 'outside'>;
}

export async function startAgentRollouts(
  answer: (promptIds: readonly number[], gateway: TestGateway, sandbox: string) => Promise<readonly number[]>,
  {
    providerIn = () => createDockerProvider({ stack: 'test-stack' }),
    taskRoot,
    upstreams,
    hostTools = [],
    engineState,
    channel,
    holdMs,
    network,
  }: AgentRolloutsOptions = {},
): Promise<AgentRollouts> {
  const home = await mkdtemp(join(tmpdir(), 'temper-agents-'));
  const provider = providerIn(home);
  let sandbox = '';
  const server = await startTestServer();
  const vllm = await startScriptedVllm((promptIds) => answer(promptIds, gateway, sandbox), engineState);
  const bare = createVllmEngine({ url: vllm.url, model: 'policy', method: 'reload' });
  const slots = createSlotTable({ requestsAtOnce: null });
  const replicas = engineState === undefined ? null : createReplicas([bare], { slots, probeMs: 100 });
  const engine = replicas ?? bare;
  // The workers have theirs in the same place: evaluations read the answers that the gateway has sealed.
  const store = createFileStore(home);
  const bundles = createBundles(store);
  const gateway = await startTestGateway(engine, {
    store,
    toolbox: createToolbox(hostTools),
    taskFiles: async (bundle) => (await bundles.open(bundle)).toolFiles,
    ...(upstreams !== undefined && { upstreams }),
  });
  const {
    stackKeys: [stackKey],
    sockets,
  } = gateway.options;
  const startWorkers = () =>
    startTestWorkers({
      server,
      home,
      provider,
      cacheDir: cacheDirectory(process.env),
      ...(channel !== undefined && { channel }),
      ...(holdMs !== undefined && { holdMs }),
      network,
      ...(taskRoot !== undefined && { taskRoots: [join(home, taskRoot)] }),
      gateway: {
        gatewaySockets: sockets,
        secretsOf: (session) => [secretOf(stackKey, session)],
        sessions: gateway.control,
      },
      sessions: createTraceActivities(gateway.control, async () => undefined),
      upstream: gateway.control.upstream,
    });
  let workers = await startWorkers();
  return {
    home,
    store,
    gateway,
    provider,
    async roll(request) {
      const handle = await server.client.workflow.start('rollout', {
        taskQueue: controlQueue,
        workflowId: randomUUID(),
        args: [{ agentTimeoutSec: 600, sampling: { maxTokensPerTurn: 2000 }, ...request }],
      });
      sandbox = agentSandboxName({ rollout: handle.firstExecutionRunId, epoch: 1 });
      const result: RolloutResult = await handle.result();
      const log = result.agentLog === null ? '' : String(await store.get(result.agentLog.digest));
      const events = gateway.events.filter((event) => JSON.stringify(event).includes(result.rollout));
      return { result, log, sandbox, evidence: `${JSON.stringify(result)}\n${log}\n${JSON.stringify(events)}` };
    },
    async replaceWorkers() {
      await workers.close();
      workers = await startWorkers();
    },
    async close() {
      await workers.close();
      await gateway[Symbol.asyncDispose]();
      await replicas?.close();
      await vllm.close();
      await server.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

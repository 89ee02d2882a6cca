import { join } from 'node:path';
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import { createBatchActivities } from '../../../activities/control/batch.ts';
import { createRunCheck } from '../../../activities/control/check-run.ts';
import { createGroupActivities } from '../../../activities/control/groups.ts';
import { createHostActivities } from '../../../activities/control/hosts.ts';
import { createReapActivities } from '../../../activities/control/reap.ts';
import { createRegradeActivities } from '../../../activities/control/regrades.ts';
import { createRewardActivity } from '../../../activities/control/reward.ts';
import { createScheduleActivities } from '../../../activities/control/schedules.ts';
import { createSweepActivities } from '../../../activities/control/sweeps.ts';
import { createTaskActivities } from '../../../activities/control/tasks.ts';
import { createAdmission } from '../../../activities/host/admission.ts';
import { createAgentActivities } from '../../../activities/host/agent.ts';
import { createEvaluation, createEvaluationInPlace } from '../../../activities/host/evaluate.ts';
import { createFailingKinds } from '../../../activities/host/failing-kinds.ts';
import type { FleetSlots } from '../../../activities/host/fleet-slots.ts';
import type { Host } from '../../../activities/host/host.ts';
import { createImageActivities } from '../../../activities/host/images.ts';
import { createIntake } from '../../../activities/host/intake.ts';
import { createLanes } from '../../../activities/host/lanes.ts';
import { createPlacement } from '../../../activities/host/placement.ts';
import { createPlacementTurns } from '../../../activities/host/placement-turns.ts';
import { createCleanUp, createProvisioning } from '../../../activities/host/sandbox.ts';
import { createSlots } from '../../../activities/host/slots.ts';
import { createSweepShare, watchTraining } from '../../../activities/host/sweep-share.ts';
import type {
  CleanUpActivities,
  EvaluationActivities,
  HostActivities,
  PlacementActivities,
  SessionActivities,
} from '../../../activities/interfaces/host.ts';
import { createAgents } from '../../../infra/agents/index.ts';
import type { OwnAgent } from '../../../infra/agents/own-agents.ts';
import { createRuntime, runtimeTarget } from '../../../infra/agents/runtime.ts';
import { createPublicNetwork } from '../../../infra/egress/network.ts';
import { createEgressPlaces } from '../../../infra/egress/places.ts';
import type { GatewayControl } from '../../../infra/gateway/control.ts';
import { createKnownRuns } from '../../../infra/grading/evidence/known-runs.ts';
import { createVerdictCache } from '../../../infra/grading/verdict-cache.ts';
import { kept } from '../../../infra/machine/fit.ts';
import { createRewards } from '../../../infra/rewards.ts';
import { createKeptResults } from '../../../infra/sandbox/kept-results.ts';
import { hasImage } from '../../../infra/sandbox/providers.ts';
import type { SandboxKind, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { createHosts } from '../../../infra/store/hosts.ts';
import { createQuarantine } from '../../../infra/tasks/quarantine.ts';
import { createTasks } from '../../../infra/tasks/tasks.ts';
import { backlogOf } from '../../../infra/temporal/backlog.ts';
import { locateWorkflowBundle } from '../../../infra/temporal/bundle.ts';
import { openShares } from '../../../infra/temporal/shares.ts';
import { inLane } from '../../../workers/lane-worker.ts';
import { byHandPlacementWorker, watchShares } from '../../../workers/placement-workers.ts';
import { createWorkerGroup } from '../../../workers/worker-group.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import {
  captureQueue,
  cleanUpQueue,
  controlQueue,
  evaluationQueue,
  hostQueue,
  imageQueue,
  ownEvaluationQueue,
  provisionQueue,
} from '../../../workflows/contracts/queues.ts';
import { createPools } from '../engine/pools.ts';
import { createFileRollouts, createFileStarts, createFileStore, createRecords } from '../store/file-store.ts';
import './quiet-runtime.ts';
import type { TestServer } from './temporal.ts';

export interface TestWorkers {
  readonly host: Host;
  readonly store: ReturnType<typeof createFileStore>;
  close(): Promise<void>;
}

/** The stages on a host. */
export type HostStages = HostActivities & CleanUpActivities & EvaluationActivities;

export interface TestWorkersOptions extends Partial<Pick<Host, 'isOfferedElsewhere'>> {
  readonly server: TestServer;
  /** The temporary directory of the test. */
  readonly home: string;
  readonly provider: SandboxProvider;
  readonly taskRoots?: readonly string[];
  /** The variables of the host that tasks may have. Default: none. */
  readonly taskVariables?: Readonly<Record<string, string>>;
  readonly capacity?: number;
  /** The name of the host. Default: test-host. */
  readonly host?: string;
  /** Reads the slots of all hosts. Default: this host is the only one. */
  readonly fleetSlots?: () => Promise<FleetSlots>;
  /** The width of the lanes of heavy stages. Default: 4. */
  readonly lanes?: number;
  /** The limit of the files that an agent changed, for tests that get them. Default: a gigabyte. */
  readonly snapshotBytes?: number;
  /** The width of the lane of evaluations. Default: 2. */
  readonly evaluations?: number;
  /** Whether a diff may be captured in the activity that waits for the agent's end. Default: true. */
  readonly capturesAtOnce?: boolean;
  /** The time after which a host without a sign of life counts as lost. Default: none. */
  readonly lostAfterMs?: number;
  /** Activities that replace or extend the real ones of the control worker. */
  readonly control?: object;
  /** Wraps the real placement. */
  readonly placement?: (real: PlacementActivities) => PlacementActivities;
  /** Wraps the real stages of the host. */
  readonly stages?: (real: HostStages) => HostStages;
  /** The activities that open and seal sessions at the gateway. Default: none. */
  readonly sessions?: SessionActivities;
  /** The gateway for agents that call the model, whose sessions `sessions` opens and seals. */
  readonly gateway?: Pick<Host, 'gatewaySockets' | 'secretsOf' | 'sessions'>;
  /** Default: sockets. */
  readonly channel?: Host['channel'];
  /** Default: a minute. */
  readonly holdMs?: number;
  /** The network that tasks may have. Default: none. */
  readonly network?: Pick<Host['network'], 'cap' | 'outside'> | undefined;
  /** The way in which the only pool of engines publishes. Default: whole weights. */
  readonly publish?: 'reload' | 'lora';
  /** Finds upstream models. Default: none are configured. */
  readonly upstream?: GatewayControl['upstream'];
  /** Default: what the provider says. */
  readonly hasImage?: Host['hasImage'];
  /** The choice of a provider for a task. Default: the only one, whatever the task needs. */
  readonly choose?: Host['choose'];
  /** Default: a directory in the home. */
  readonly cacheDir?: string;
  /** Agents of a user's own. Default: none. */
  readonly ownAgents?: readonly OwnAgent[];
  /** Modules with rewards. Default: none. */
  readonly rewards?: readonly string[];
  /** Default: the real workflows. */
  readonly workflowBundle?: WorkerOptions['workflowBundle'];
}

/** Starts control and host workers in this process, with a real server and real sandboxes. A gateway is up to the test. */
export async function startTestWorkers(options: TestWorkersOptions): Promise<TestWorkers> {
  const { server, home, provider, upstream = noUpstream } = options;
  const store = createFileStore(join(home, 'store'));
  const host = createTestHost(options);
  const agents = createAgents({ cacheDir: options.cacheDir ?? join(home, 'cache'), own: options.ownAgents ?? [] });
  const connection = await NativeConnection.connect({ address: server.address });
  const { client } = server;
  const rewards = await createRewards(options.rewards);
  const quarantine = createQuarantine(createRecords(home));
  const known = { client, store, quarantine, tasks: host.tasks, network: host.network.cap };
  const records = createRecords(join(home, 'runs'));
  const rollouts = createFileRollouts(home);
  const starts = createFileStarts(home);
  const control = {
    ...createRewardActivity(rewards),
    ...createTaskActivities({ ...known, records, agent: agents.get, rewards, upstream }),
    ...createRunCheck({
      ...known,
      starts,
      agent: agents.get,
      rewards,
      pools: createPools(options.publish ?? 'reload'),
    }),
    ...createGroupActivities({ client, records, rollouts, starts }),
    ...createBatchActivities({ store, records }),
    ...createHostActivities({
      client,
      hosts: { ...createHosts(createDirectory(home)), names: async () => [host.name] },
      lostAfterMs: options.lostAfterMs ?? 0,
    }),
    ...createReapActivities(client),
    ...createScheduleActivities(client),
    ...createRegradeActivities({ client, store, quarantine, tasks: host.tasks, records, rollouts, starts }),
    ...createSweepActivities({
      ...known,
      records,
      rollouts,
      starts,
      agent: agents.get,
      serving: async () => ({ version: null, versions: [] }),
      pinVersion: async () => false,
      upstream,
    }),
    ...options.control,
  };
  const lanes = createLanes({ stages: options.lanes ?? 4, evaluations: options.evaluations ?? 2 });
  const workflowBundle = options.workflowBundle ?? (await locateWorkflowBundle(process.env));
  const { placement = (real) => real, stages = (real) => real } = options;
  const { provisionSandbox, captureDiff, captureSnapshot, releaseSandbox, evaluate, evaluateInPlace, ...light } =
    stages({
      ...createProvisioning(host),
      ...createAgentActivities(host, options.capturesAtOnce === false ? undefined : lanes),
      ...createEvaluation(host),
      ...createEvaluationInPlace(host),
      ...createCleanUp(host),
    });
  const share = createSweepShare(host.slots, 0.5, watchTraining(client));
  const turns = createPlacementTurns({
    slots: host.slots,
    share,
    backlogOf: (queue) => backlogOf(client, queue),
  });
  const placing = { turns, placement: placement(createPlacement({ ...host, rollouts, turns })) };
  const queues: WorkerOptions[] = [
    {
      taskQueue: controlQueue,
      workflowBundle,
      activities: control,
      workflowFailureErrorTypes: { '*': ['Error'] },
    } as never,
    byHandPlacementWorker(placing),
    { taskQueue: imageQueue, activities: createImageActivities(host) },
    { taskQueue: hostQueue(host.name), activities: { ...light, ...options.sessions } },
    { ...inLane(lanes.provision), taskQueue: provisionQueue(host.name), activities: { provisionSandbox } },
    { ...inLane(lanes.capture), taskQueue: captureQueue(host.name), activities: { captureDiff, captureSnapshot } },
    { ...inLane(lanes.evaluate), taskQueue: evaluationQueue, activities: { evaluate } },
    {
      ...inLane(lanes.evaluate, { queue: lanes.evaluate.addQueue() }),
      taskQueue: ownEvaluationQueue(host.name),
      activities: { evaluateInPlace },
    },
    { ...inLane(lanes.release), taskQueue: cleanUpQueue(host.name), activities: { releaseSandbox } },
  ];
  const workers = createWorkerGroup((one) =>
    Worker.create({ connection, namespace: server.namespace, maxHeartbeatThrottleInterval: '1s', ...one }),
  );
  await Promise.all(queues.map(workers.start));
  const closing = new AbortController();
  const { slots } = host;
  const watch = { ...placing, slots, log: { warn: () => {} }, openShares: () => openShares(client) };
  const { fleetSlots } = options;
  const watching = watchShares({ ...watch, ...(fleetSlots && { fleetSlots }), start: workers.start }, closing.signal);
  return {
    host,
    store,
    async close() {
      closing.abort();
      await watching;
      workers.shutdown();
      await workers.ended;
      await connection.close();
      await provider.close();
    },
  };
}

async function noUpstream(name: string): Promise<never> {
  throw new TemperFailure('UnknownUpstream', `upstream: expected none in this test, got ${name}`);
}

function createTestHost({ home, provider, taskRoots, capacity, gateway, ...options }: TestWorkersOptions): Host {
  const variables = options.taskVariables ?? {};
  const store = createFileStore(join(home, 'store'));
  const cacheDir = options.cacheDir ?? join(home, 'cache');
  const agents = createAgents({ cacheDir, own: options.ownAgents ?? [] });
  const name = options.host ?? 'test-host';
  const runtime = createRuntime({ cacheDir });
  const providers = new Map<SandboxKind, SandboxProvider>([[provider.kind, provider]]);
  return {
    name,
    stack: 'test-stack',
    fence: () => `${name}/1`,
    acts: () => true,
    mayAct: async () => undefined,
    sharesJournals: false,
    store,
    verdicts: createVerdictCache({ records: createRecords(join(home, 'verdicts')), store }),
    knownRuns: createKnownRuns(),
    isDiskFull: () => false,
    tasks: createTasks({ store, roots: taskRoots ?? [], dataSets: { directory: cacheDir, offline: true }, variables }),
    slots: createSlots(capacity ?? 4),
    results: createKeptResults(join(home, 'results'), 3_600_000),
    admission: createAdmission({ need: kept, readLevels: () => [] }),
    intake: createIntake(),
    failing: createFailingKinds(),
    providers: { all: providers, seen: async () => providers },
    choose: options.choose ?? (async () => provider),
    isOfferedElsewhere: options.isOfferedElsewhere ?? (async () => false),
    hasImage: options.hasImage ?? ((image) => hasImage(providers, image)),
    agent: agents.get,
    gatewaySockets: { sessions: join(home, 'sessions'), agents: join(home, 'gw') },
    secretsOf: (session) => [session],
    sessions: { status: async () => null },
    ...gateway,
    channel: options.channel ?? 'socket',
    network: {
      ...(options.network ?? { cap: 'none', outside: createPublicNetwork() }),
      places: createEgressPlaces(join(home, 'egress')),
      runtime: runtime.prepare,
    },
    holdMs: options.holdMs ?? 60_000,
    snapshotBytes: options.snapshotBytes ?? 2 ** 30,
    pathOf: (kind) => (kind === 'local' ? `${runtimeTarget}/bin:/usr/bin:/bin` : null),
    evaluationMounts: async (kind) => (kind === 'local' ? [await runtime.prepare()] : []),
  };
}

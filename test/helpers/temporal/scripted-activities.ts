import { Context } from '@temporalio/activity';
import { NativeConnection, Worker, type WorkerOptions, type WorkflowBundleOption } from '@temporalio/worker';
import { atBoundary } from '../../../activities/boundary.ts';
import { createBatchActivities } from '../../../activities/control/batch.ts';
import { createGroupActivities } from '../../../activities/control/groups.ts';
import { createRegradeActivities } from '../../../activities/control/regrades.ts';
import { createScheduleActivities } from '../../../activities/control/schedules.ts';
import { createSweepActivities } from '../../../activities/control/sweeps.ts';
import { sendHeartbeatsNow } from '../../../activities/heartbeats.ts';
import { createPlacementTurns } from '../../../activities/host/placement-turns.ts';
import { createSlots } from '../../../activities/host/slots.ts';
import type { ControlActivities } from '../../../activities/interfaces/control.ts';
import type {
  AdoptionActivities,
  CleanUpActivities,
  EvaluationActivities,
  HostActivities,
  ImageActivities,
  OpenTrace,
  ReaperActivities,
  SessionActivities,
} from '../../../activities/interfaces/host.ts';
import type { TrainerActivities, UpdatePolicy } from '../../../activities/interfaces/trainer.ts';
import type { Records } from '../../../infra/store/records.ts';
import { createQuarantine } from '../../../infra/tasks/quarantine.ts';
import { locateWorkflowBundle } from '../../../infra/temporal/bundle.ts';
import { openShares } from '../../../infra/temporal/shares.ts';
import { byHandPlacementWorker, watchShares } from '../../../workers/placement-workers.ts';
import { createWorkerGroup } from '../../../workers/worker-group.ts';
import type { BlobRef } from '../../../workflows/contracts/blob.ts';
import {
  adoptionQueue,
  captureQueue,
  cleanUpQueue,
  controlQueue,
  creationQueue,
  evaluationQueue,
  hostQueue,
  imageQueue,
  ownEvaluationQueue,
  provisionQueue,
  trainerQueue,
} from '../../../workflows/contracts/queues.ts';
import { createFileRollouts, createFileStarts, createFileStore, createRecords } from '../store/file-store.ts';
import './quiet-runtime.ts';
import {
  evaluationSeconds,
  findUpstream,
  following,
  listedTasks,
  type Script,
  serving,
  summaryOf,
  taskOf,
  traceOf,
  upstreamSummaryOf,
  verdictOf,
} from './script.ts';
import { createScriptedPlacement, createScriptedStarts } from './scripted-starts.ts';
import type { TestServer } from './temporal.ts';

export interface ScriptedWorkers {
  readonly records: Records;
  readonly updates: readonly (Pick<UpdatePolicy, 'step' | 'update' | 'mostUpdates'> & { readonly batch: string })[];
  readonly published: readonly number[];
  readonly released: readonly string[];
  readonly opened: readonly OpenTrace[];
  /** Starts a further control worker, of another version. */
  deploy(version: Version): Promise<void>;
  close(): Promise<void>;
}

/** The options that make a control worker a version; see `versionOf`. */
type Version = Pick<WorkerOptions, 'workerDeploymentOptions'>;

export interface ScriptedWorkersOptions {
  /** Workflows that were changed for a test; default: the real ones. */
  readonly workflowBundle?: WorkflowBundleOption | undefined;
  /** The version of the control worker; default: none. */
  readonly version?: Version;
  /** The number of evaluations that run at once; default: as many as there are. */
  readonly evaluationsAtOnce?: number;
}

/** Starts workers whose activities follow a script, without sandbox, engine and trainer. Workflows, server, store and records are real. */
export async function startScriptedWorkers(
  server: Pick<TestServer, 'address' | 'client' | 'namespace'>,
  home: string,
  script: Script,
  options: ScriptedWorkersOptions = {},
): Promise<ScriptedWorkers> {
  const store = createFileStore(`${home}/store`);
  const records = createRecords(`${home}/runs`);
  const rollouts = createFileRollouts(home);
  const starts = createFileStarts(home);
  const updates: ScriptedWorkers['updates'][number][] = [];
  const published: number[] = [];
  const released: string[] = [];
  const opened: OpenTrace[] = [];
  const blob: BlobRef = await store.put(Buffer.from('scripted'), 'text/plain');
  const task = taskOf(blob);
  const caller = (): string => Context.current().info.workflowExecution?.workflowId ?? '';

  const stored = { client: server.client, store, records, rollouts, starts };
  const sweeps = createSweepActivities({
    ...stored,
    agent: () => ({ usesModel: true }),
    quarantine: createQuarantine(createRecords(home)),
    network: 'public',
    tasks: listedTasks,
    serving: async () => serving(script.version?.(caller()) ?? published.at(-1) ?? 0),
    pinVersion: async () => true,
    upstream: async (name) => findUpstream(script, name),
  });
  const regrades = createRegradeActivities({
    ...stored,
    quarantine: createQuarantine(createRecords(home)),
    tasks: { resolve: async (address) => ({ ...task, id: address }), async *scan() {} },
  });
  const control: ControlActivities = {
    ...createGroupActivities(stored),
    ...createBatchActivities({ store, records }),
    ...createScheduleActivities(server.client),
    ...regrades,
    summariseRegrade: (input) => following(script.summarise, () => regrades.summariseRegrade(input)),
    ...sweeps,
    summariseSweep: (input) => following(script.summarise, () => sweeps.summariseSweep(input)),
    endedRollouts: (input) => following(script.ask, () => sweeps.endedRollouts(input)),
    recordSweepRows: (input) => following(script.record, () => sweeps.recordSweepRows(input)),
    resolveTask: async ({ address, upstream }) => {
      if (upstream !== undefined) findUpstream(script, upstream);
      return {
        task: {
          ...task,
          id: address,
          ...(script.pulled === true && { imageFrom: 'registry' as const }),
          ...(script.gradedIn !== undefined && { gradedIn: script.gradedIn }),
          ...(script.steps !== undefined && { steps: script.steps }),
        },
        usesModel: true,
        ...(script.branches === undefined ? {} : { branches: script.branches }),
      };
    },
    reward: async ({ verdict }) => verdict.value ?? 0,
    liveHosts: async () => ({ hosts: ['scripted'] }),
    inspectHost: async ({ host }) => ({ alive: script.isAlive?.(host) ?? true, lastSeenMs: null }),
    guardDisk: async () => ({ paused: [], resumed: [] }),
    collectGarbage: async () => ({ categories: [] }),
    ...createScriptedStarts(script, stored),
    cancelOrphans: async () => (await script.orphans?.()) ?? { groups: [], rollouts: [] },
  };
  const sessions: SessionActivities = {
    openTrace: async (input) => {
      opened.push(input);
      return { session: input.epoch.rollout, contextLength: null };
    },
    sealTrace: async ({ epoch }) => {
      await script.seal?.();
      const upstream = opened.find((one) => one.epoch.rollout === epoch.rollout)?.upstream;
      if (upstream !== undefined) return upstreamSummaryOf(blob, findUpstream(script, upstream));
      const version = script.version?.(caller()) ?? published.at(-1) ?? 0;
      return summaryOf(await store.putJson(traceOf(epoch.rollout, version)), version);
    },
    closeTrace: async () => ({ promptTokens: 40, sampledTokens: 20, engineSeconds: 2, waitedSeconds: 0 }),
    readVersions: async ({ groups }) => script.versions?.(groups) ?? groups.map(() => null),
  };
  const images: ImageActivities = { prepareImage: async ({ task }) => ({ image: task.image }) };
  const placement = createScriptedPlacement(script, rollouts);
  const host: HostActivities = {
    provisionSandbox: async ({ epoch }) => {
      await script.provision?.(caller());
      const rest = { seconds: 1, diskBeforeMb: 0, carriesChanges: false };
      return { sandbox: epoch.rollout, kind: script.kind ?? 'local', baseCommit: '0'.repeat(40), ...rest };
    },
    awaitAgent: () =>
      atBoundary(async (signal) => {
        const { promise: ended, reject } = Promise.withResolvers<never>();
        signal.addEventListener('abort', () => reject(signal.reason));
        await Promise.race([script.agent?.(caller()), ended]);
        return { stop: script.stop?.(caller()) ?? 'submitted', exitCode: 0, log: blob, startSeconds: 0 };
      }),
    deliverCancel: async () => sendHeartbeatsNow(Context.current().info.workflowExecution?.runId ?? ''),
    evaluateInPlace: async (input) => evaluation.evaluate(input),
    captureSnapshot: async ({ kind }) => ({ kind, parts: [blob.digest], entries: 1, bytes: 1 }),
    captureDiff: async () => ({ patch: blob, baseCommit: '0'.repeat(40), files: 1, dropped: 0, tooLarge: false }),
  };
  const adoption: AdoptionActivities = {
    adoptSandbox: async (request) => script.adopt?.(request) ?? { host: 'scripted', token: 'scripted/2' },
  };
  const reaping: ReaperActivities = { reapSandboxes: async () => ({ removed: [], images: [], suspected: [] }) };
  const cleanUp: CleanUpActivities = {
    releaseSandbox: async ({ epoch }) => {
      await script.release?.();
      released.push(epoch.rollout);
      return { removed: true };
    },
  };
  const evaluation: EvaluationActivities = {
    evaluate: async () => {
      await script.evaluate?.(caller());
      const value = script.reward(caller());
      const flags = (script.flags?.(caller()) ?? []).map((trick) => ({ trick, evidence: 'scripted' }));
      return { ...verdictOf(blob, value, flags), seconds: evaluationSeconds };
    },
  };
  const trainer: TrainerActivities = {
    prepareTrainer: async () => {
      await script.prepare?.();
      return { metrics: {} };
    },
    update: async ({ step, update, mostUpdates, batch }) => {
      updates.push({ step, update, mostUpdates, batch: batch.digest });
      await script.update?.();
      return { name: `v${step}`, metrics: {} };
    },
    skipUpdate: async ({ step }) => script.skip?.(step),
    syncWeights: async ({ version }) => {
      if (version === 0) published.length = 0;
      published.push(version);
      return { replicas: 1, maxLogprobGap: 0 };
    },
    restoreWeights: ({ version }) =>
      atBoundary(async (signal) => {
        await script.restore?.(version, signal);
        return { restored: [] };
      }),
  };

  const connection = await NativeConnection.connect({ address: server.address });
  const workflowBundle = options.workflowBundle ?? (await locateWorkflowBundle(process.env));
  const slots = createSlots(10_000);
  const placing = {
    placement,
    turns: createPlacementTurns({ slots, share: { allowsMore: async () => true }, backlogOf: async () => 0 }),
  };
  const controlWorker = (version: Version = {}): WorkerOptions => ({
    taskQueue: controlQueue,
    workflowBundle,
    activities: control,
    ...version,
  });
  const queues: WorkerOptions[] = [
    controlWorker(options.version),
    { taskQueue: imageQueue, activities: images },
    byHandPlacementWorker(placing),
    {
      taskQueue: hostQueue('scripted'),
      activities: { ...host, ...sessions, ...reaping },
      maxConcurrentActivityTaskExecutions: 300,
    },
    { taskQueue: provisionQueue('scripted'), activities: host },
    { taskQueue: captureQueue('scripted'), activities: host },
    { taskQueue: ownEvaluationQueue('scripted'), activities: host },
    { taskQueue: cleanUpQueue('scripted'), activities: cleanUp },
    { taskQueue: adoptionQueue('e2b'), activities: adoption },
    {
      taskQueue: evaluationQueue,
      activities: evaluation,
      maxConcurrentActivityTaskExecutions: options.evaluationsAtOnce ?? 100,
    },
    { taskQueue: trainerQueue, activities: trainer },
    { taskQueue: creationQueue, activities: { allowCreation: async () => script.allowCreation?.(caller()) } },
  ];
  // A test that failed may leave an activity waiting forever.
  const workers = createWorkerGroup((one) =>
    Worker.create({ connection, namespace: server.namespace, shutdownForceTime: '20s', ...one }),
  );
  await Promise.all(queues.map(workers.start));
  const closing = new AbortController();
  const { client } = server;
  const watching = watchShares(
    { ...placing, slots, log: { warn: () => {} }, openShares: () => openShares(client), start: workers.start },
    closing.signal,
  );
  return {
    records,
    updates,
    published,
    released,
    opened,
    deploy: async (version) => void (await workers.start(controlWorker(version))),
    async close() {
      closing.abort();
      await watching;
      workers.shutdown();
      // An open connection would keep the process of the test file alive.
      await workers.ended.finally(() => connection.close());
    },
  };
}

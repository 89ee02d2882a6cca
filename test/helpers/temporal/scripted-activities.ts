import { Context } from '@temporalio/activity';
import { NativeConnection, Runtime, Worker, type WorkerOptions, type WorkflowBundleOption } from '@temporalio/worker';
import { atBoundary } from '../../../activities/boundary.ts';
import { createBatchActivities } from '../../../activities/control/batch.ts';
import { createGroupActivities } from '../../../activities/control/groups.ts';
import { createRegradeActivities } from '../../../activities/control/regrades.ts';
import { createScheduleActivities } from '../../../activities/control/schedules.ts';
import { createSweepActivities } from '../../../activities/control/sweeps.ts';
import type { ControlActivities, OpenTrace } from '../../../activities/interfaces/control.ts';
import type {
  CleanUpActivities,
  EvaluationActivities,
  HostActivities,
  ImageActivities,
  PlacementActivities,
  ReaperActivities,
} from '../../../activities/interfaces/host.ts';
import type { TrainerActivities } from '../../../activities/interfaces/trainer.ts';
import { createFileStore } from '../../../infra/store/files.ts';
import { createRecords, type Records } from '../../../infra/store/records.ts';
import { createQuarantine } from '../../../infra/tasks/quarantine.ts';
import { locateWorkflowBundle } from '../../../infra/temporal/bundle.ts';
import type { BlobRef } from '../../../workflows/contracts/blob.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Trick } from '../../../workflows/contracts/flags.ts';
import {
  cleanUpQueue,
  controlQueue,
  evaluationQueue,
  hostQueue,
  imageQueue,
  placementQueue,
  trainerQueue,
} from '../../../workflows/contracts/queues.ts';
import type { BranchRule, Segment, TraceSummary } from '../../../workflows/contracts/trace.ts';
import type { Upstream } from '../../../workflows/contracts/upstream.ts';
import type { TestServer } from './temporal.ts';

Runtime.install({ logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} } });

/** What a scripted rollout does: its reward, or how long its agent takes. */
export interface Script {
  /** Reward of a rollout, by its workflow id. */
  reward(workflowId: string): number;
  /** Resolves when the run's model is ready. */
  prepare?(): Promise<void>;
  /** Rejects when nobody can say which task comes next. */
  choose?(): Promise<void>;
  /** Rejects when the update can't be made. */
  update?(): Promise<void>;
  /** Rejects when the sandbox can't be had. */
  provision?(workflowId: string): Promise<void>;
  /** Resolves when the agent of this rollout has ended. */
  agent?(workflowId: string): Promise<void>;
  /** Resolves when the tests of this workflow's rollout have ended. */
  evaluate?(workflowId: string): Promise<void>;
  /** The engines are given this version again. */
  restore?(version: number): Promise<void>;
  /** Images come from a registry. */
  pulled?: boolean;
  /** The rule that the agent declares; default: none, as before there was one. */
  branches?: BranchRule;
  /** Version that the engine samples by, for this workflow; default: the one that was published last. */
  version?(workflowId: string): number;
  /** Smallest version that each of these groups has sampled by so far; default: none has sampled yet. */
  versions?(groups: readonly number[]): readonly (number | null)[];
  /** What the verdict of a rollout is flagged for. */
  flags?(workflowId: string): readonly Trick[];
  /** The model behind the upstream `others`, the only one there is. */
  upstreamModel?(): string;
}

export interface ScriptedWorkers {
  readonly records: Records;
  readonly updates: readonly { readonly step: number; readonly batch: string }[];
  readonly published: readonly number[];
  readonly released: readonly string[];
  readonly opened: readonly OpenTrace[];
  close(): Promise<void>;
}

/** Every activity as a typed sibling without a sandbox, an engine or a trainer: the workflows, server, store and records are real. */
export async function startScriptedWorkers(
  server: TestServer,
  home: string,
  script: Script,
  changed?: WorkflowBundleOption,
): Promise<ScriptedWorkers> {
  const store = createFileStore(`${home}/store`);
  const records = createRecords(`${home}/runs`);
  const updates: { step: number; batch: string }[] = [];
  const published: number[] = [];
  const released: string[] = [];
  const opened: OpenTrace[] = [];
  const blob: BlobRef = await store.put(Buffer.from('scripted'), 'text/plain');
  const task = {
    id: 'scripted',
    bundle: blob,
    image: 'none',
    workdir: '/workspace',
    agentTimeoutSec: null,
    evaluationTimeoutSec: null,
    cpus: 1,
    memoryMb: 64,
    diskMb: 64,
  };
  const caller = (): string => Context.current().info.workflowExecution?.workflowId ?? '';

  const control: ControlActivities = {
    ...createGroupActivities({ client: server.client, records }),
    ...createBatchActivities({ store, records }),
    ...createScheduleActivities(server.client),
    ...createRegradeActivities({
      ...{ client: server.client, store, records, quarantine: createQuarantine(createRecords(home)) },
      tasks: { resolve: async (address) => ({ ...task, id: address }), async *scan() {} },
    }),
    ...createSweepActivities({
      ...{ client: server.client, store, records, agent: () => ({ usesModel: true }) },
      quarantine: createQuarantine(createRecords(home)),
      tasks: { first: async (set, count) => addresses(set, count), list: async (set) => addresses(set, 8) },
      serving: async () => serving(script.version?.(caller()) ?? published.at(-1) ?? 0),
      pinVersion: async () => true,
      upstream: async (name) => findUpstream(script, name),
    }),
    resolveTask: async ({ address, upstream }) => {
      if (upstream !== undefined) findUpstream(script, upstream);
      return {
        task: { ...task, id: address, ...(script.pulled === true && { imageFrom: 'registry' as const }) },
        usesModel: true,
        ...(script.branches === undefined ? {} : { branches: script.branches }),
      };
    },
    openTrace: async (input) => {
      opened.push(input);
      return { session: input.attempt.rollout };
    },
    sealTrace: async ({ attempt }) => {
      const asked = opened.find((one) => one.attempt.rollout === attempt.rollout)?.upstream;
      if (asked !== undefined) return upstreamSummary(blob, findUpstream(script, asked));
      const version = script.version?.(caller()) ?? published.at(-1) ?? 0;
      const segment: Segment = {
        index: 0,
        kind: 'main',
        tokens: [1, 2, 3],
        mask: [0, 1, 1],
        logprobs: [0, -1, -1],
        versions: [-1, version, version],
        finishReason: 'stop',
        maskedTurns: [],
      };
      const trace = await store.putJson({
        session: attempt.rollout,
        turns: [],
        segments: [segment],
        forks: 0,
        transcript: [],
      });
      return {
        trace,
        turns: 1,
        segments: 1,
        sampledTokens: 2,
        minVersion: version,
        maxVersion: version,
        contextOverflow: false,
        turnLimit: false,
        engineFailures: 0,
      };
    },
    closeTrace: async () => {},
    reward: async ({ verdict }) => verdict.value ?? 0,
    inspectHost: async () => ({ alive: true, lastSeenMs: Date.now() }),
    checkRun: async () => {},
    chooseTask: async ({ index }) => {
      await script.choose?.();
      return { address: `scripted:${index}` };
    },
    readVersions: async ({ groups }) => script.versions?.(groups) ?? groups.map(() => null),
    cancelOrphans: async () => ({ groups: [] }),
  };
  const images: ImageActivities = { prepareImage: async ({ task }) => ({ image: task.image }) };
  const placement: PlacementActivities = { placeRollout: async () => ({ host: 'scripted' }) };
  const host: HostActivities = {
    provisionSandbox: async ({ attempt }) => {
      await script.provision?.(caller());
      return { sandbox: attempt.rollout, kind: 'local', baseCommit: '0'.repeat(40) };
    },
    startAgent: async () => ({ started: 'started' }),
    awaitAgent: () =>
      atBoundary(async (signal) => {
        const { promise: ended, reject } = Promise.withResolvers<never>();
        signal.addEventListener('abort', () => reject(signal.reason));
        await Promise.race([script.agent?.(caller()), ended]);
        return { stop: 'submitted', exitCode: 0, log: blob };
      }),
    captureDiff: async () => ({ patch: blob, baseCommit: '0'.repeat(40), files: 1, dropped: 0, tooLarge: false }),
  };
  const cleanUp: CleanUpActivities & ReaperActivities = {
    releaseSandbox: async ({ attempt }) => {
      released.push(attempt.rollout);
      return { removed: true };
    },
    reapSandboxes: async () => ({ removed: [] }),
  };
  const evaluation: EvaluationActivities = {
    evaluate: async () => {
      await script.evaluate?.(caller());
      const value = script.reward(caller());
      const flags = (script.flags?.(caller()) ?? []).map((trick) => ({ trick, evidence: 'scripted' }));
      return { kind: 'graded', value, exitCode: 0, passed: 0, failed: 0, log: blob, subject: '', flags };
    },
  };
  const trainer: TrainerActivities = {
    prepareTrainer: async () => {
      await script.prepare?.();
      return { metrics: {} };
    },
    update: async ({ step, batch }) => {
      updates.push({ step, batch: batch.digest });
      await script.update?.();
      return { name: `v${step}`, metrics: {} };
    },
    syncWeights: async ({ version }) => {
      if (version === 0) published.length = 0;
      published.push(version);
      return { replicas: 1, maxLogprobGap: 0 };
    },
    restoreWeights: async ({ version }) => {
      await script.restore?.(version);
      return { restored: [] };
    },
  };

  const connection = await NativeConnection.connect({ address: server.address });
  const workflowBundle = changed ?? (await locateWorkflowBundle(process.env));
  const queues: WorkerOptions[] = [
    { taskQueue: controlQueue, workflowBundle, activities: control },
    { taskQueue: imageQueue, activities: images },
    { taskQueue: placementQueue, activities: placement },
    { taskQueue: hostQueue('scripted'), activities: host },
    { taskQueue: cleanUpQueue('scripted'), activities: cleanUp },
    { taskQueue: evaluationQueue, activities: evaluation },
    { taskQueue: trainerQueue, activities: trainer },
  ];
  const workers = await Promise.all(
    // A test that failed may leave an activity that nobody lets go of any more.
    queues.map((one) => Worker.create({ connection, namespace: server.namespace, shutdownForceTime: '20s', ...one })),
  );
  const running = workers.map((worker) => worker.run());
  return {
    records,
    updates,
    published,
    released,
    opened,
    async close() {
      for (const worker of workers) worker.shutdown();
      const ended = await Promise.allSettled(running);
      // An open connection would keep the process, and with it the file of tests, for ever.
      await connection.close();
      for (const one of ended) if (one.status === 'rejected') throw one.reason;
    },
  };
}

const addresses = (set: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${set}#${index}`);

/** Throws as the gateway does where nobody configured the name. */
function findUpstream({ upstreamModel }: Script, name: string): Upstream {
  if (name === 'others') return { name, model: upstreamModel?.() ?? 'large' };
  throw new TemperFailure('UnknownUpstream', `upstream: expected one that upstreams.json names (others), got ${name}`);
}

const upstreamSummary = (trace: BlobRef, upstream: Upstream): TraceSummary => ({
  ...{ trace, upstream, turns: 3, segments: 0, sampledTokens: 70, promptTokens: 900, minVersion: null },
  ...{ maxVersion: null, contextOverflow: false, turnLimit: false, engineFailures: 0 },
});

const serving = (version: number) => ({ version, versions: [version] });

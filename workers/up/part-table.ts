import { join } from 'node:path';
import { gatewayNames, socketOf } from '../../infra/gateway/sockets.ts';
import { usableMemory } from '../../infra/machine/usable-memory.ts';
import { untilListens } from '../../infra/process/listens.ts';
import type { Config } from '../../infra/settings/config.ts';
import { type ClientConnection, configuredTarget } from '../../infra/temporal/connection.ts';
import type { QueueKind } from '../../infra/temporal/pollers.ts';
import { controlQueue, hostQueue, trainerQueue } from '../../workflows/contracts/queues.ts';
import type { Part, PartKind, PartName } from './part.ts';
import { untilHttpAnswers, untilPolled, untilSocketAnswers } from './ready.ts';
import { type SpawnedPart, spawnedPart } from './spawned-part.ts';
import { temporalPart } from './temporal-part.ts';

/** Context that the parts of a stack share. */
export interface PartContext {
  readonly config: Config;
  /** Receives a line about each slow operation. */
  readonly progress: (line: string) => void;
  /** Connects to the stack's Temporal server, with what the files of its credentials hold by then. */
  connect(): Promise<ClientConnection>;
}

interface TimeLimits {
  readonly readyTimeoutMs: number;
  readonly drainTimeoutMs: number;
}

/**
 * Time limits for a start and for a stop. A start is slow where a worker loads the workflow bundle (seconds on a busy
 * machine) or a policy its weights. A stop is quick for a worker, since agents run detached; a gateway finishes the
 * turns in flight.
 */
const timeLimits = {
  worker: { readyTimeoutMs: 90_000, drainTimeoutMs: 20_000 },
  gateway: { readyTimeoutMs: 30_000, drainTimeoutMs: 10_000 },
  policy: { readyTimeoutMs: 60_000, drainTimeoutMs: 10_000 },
} as const satisfies Record<string, TimeLimits>;

/** A worker makes little garbage, so that the default for its young objects (48 MB in each thread) would be memory that idles. */
const smallYoungHeap = ['--max-semi-space-size=4'];

/**
 * A host worker holds little for each of many agents: V8 collects when its heap has grown by a fifth, where it would otherwise let a
 * heap of 100 MB grow to four times that.
 */
const denseHeap = [...smallYoungHeap, '--heap-growing-percent=20'];

/**
 * The options of V8 for a gateway: a heap of half of the machine's memory for all gateways together (by the default of 4 GB, a
 * thousand long conversations would leave no time for anything but collecting garbage), and collections by the growth of heap
 * and buffers together. By default every 64 MB of buffers, which are 250 requests of 256 KB, cost a collection of the whole heap.
 */
export const gatewayHeap = (gateways: number): readonly string[] => {
  const heapMb = Math.max(1024, Math.floor(usableMemory() / 2 ** 21 / gateways));
  return [`--max-old-space-size=${heapMb}`, ...bufferOptions];
};

/** Only for the releases that are known to have the option: a process with an unknown one does not start. */
const bufferOptions = process.versions.node.startsWith('24.') ? ['--external-memory-accounted-in-global-limit'] : [];

/** The factory of each kind of part. */
export const partTable: Readonly<Record<PartKind, (context: PartContext, name: PartName) => Part>> = {
  temporal: ({ config, progress }) => temporalPart(config, progress),
  policy: (context, name) =>
    spawned(context, name, {
      command: ['policy'],
      ...timeLimits.policy,
      untilReady: async (pid, signal) => {
        await untilHttpAnswers(`${context.config.policyUrl}/health`, signal);
        await untilListens(pid, context.config.policyPort, signal);
      },
    }),
  gateway: (context, name) =>
    spawned(context, name, {
      command: ['gateway', '--name', name],
      nodeOptions: gatewayHeap(context.config.gateways),
      ...timeLimits.gateway,
      untilReady: (_pid, signal) =>
        untilSocketAnswers(socketOf(context.config.paths.gatewaySockets.control, name), signal),
    }),
  control: (context, name) =>
    spawned(context, name, {
      command: ['worker', 'control'],
      nodeOptions: smallYoungHeap,
      ...timeLimits.worker,
      untilReady: untilWorkerPolls(context, controlQueue, 'workflow'),
    }),
  host: (context, name) =>
    spawned(context, name, {
      command: ['worker', 'host'],
      nodeOptions: denseHeap,
      ...timeLimits.worker,
      // It may have to watch the dead machine of its name first.
      readyTimeoutMs: timeLimits.worker.readyTimeoutMs + context.config.hostLostAfterMs,
      untilReady: untilWorkerPolls(context, hostQueue(context.config.host), 'activity'),
    }),
  trainer: (context, name) =>
    spawned(context, name, {
      command: ['worker', 'trainer'],
      nodeOptions: smallYoungHeap,
      ...timeLimits.worker,
      untilReady: untilWorkerPolls(context, trainerQueue, 'activity'),
    }),
};

/**
 * The parts that this machine runs: no Temporal server when the environment names one, no policy server when engine and
 * trainer are elsewhere.
 */
export function neededParts(config: Config): PartName[] {
  const ownServer = configuredTarget(config.env) === undefined;
  const ownPolicy = [...config.pool.urls, config.pool.trainer.url].includes(config.policyUrl);
  return [
    ...(ownServer ? (['temporal'] as const) : []),
    ...(ownPolicy ? (['policy'] as const) : []),
    ...gatewayNames(config.gateways),
    'control',
    'host',
    'trainer',
  ];
}

function spawned(
  { config }: PartContext,
  name: PartName,
  options: Omit<SpawnedPart, 'name' | 'config' | 'logFile'>,
): Part {
  const logFile = config.logs === 'stdout' ? 'stdout' : join(config.paths.logs, `${name}.log`);
  return spawnedPart({ ...options, name, config, logFile });
}

const untilWorkerPolls =
  ({ connect }: PartContext, queue: string, kind: QueueKind): SpawnedPart['untilReady'] =>
  async (pid, signal) => {
    const { client, close } = await connect();
    try {
      await untilPolled({ client, queue, kind, pid }, signal);
    } finally {
      await close();
    }
  };

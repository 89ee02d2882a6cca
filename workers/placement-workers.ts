import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { FleetSlots } from '../activities/host/fleet-slots.ts';
import type { PlacementQueue } from '../activities/host/placement-order.ts';
import type { PlacementTurns } from '../activities/host/placement-turns.ts';
import type { Slots } from '../activities/host/slots.ts';
import type { PlacementActivities } from '../activities/interfaces/host.ts';
import type { OpenShare } from '../infra/temporal/shares.ts';
import { placementQueue, sharePlacementQueue } from '../workflows/contracts/queues.ts';
import { placementTuner } from './placement-tuner.ts';

/** One poller for each placement queue, so that only one rollout waits on a host whose last slot another one took. */
const onePoller = { activityTaskPollerBehavior: { type: 'simple-maximum', maximum: 1 } } as const;
/** The intervals at which a host asks for new runs and sweeps, while it has a free slot and while it has none. */
const askFreeMs = 1_000;
const askFullMs = 5_000;
/** The interval at which a host that serves several runs or sweeps reads how many slots the other hosts have. */
const askFleetMs = 60_000;

/** The queue of rollouts that were started by hand. */
const queueByHand: PlacementQueue = { name: placementQueue, sweep: false, weight: 1 };

export interface PlacementWorkerDependencies {
  readonly turns: PlacementTurns;
  readonly placement: PlacementActivities;
}

/** Returns the options of the worker that polls the queue of rollouts that were started by hand. */
export const byHandPlacementWorker = (dependencies: PlacementWorkerDependencies): WorkerOptions =>
  workerOf(queueByHand, dependencies);

interface WatchOptions extends PlacementWorkerDependencies {
  readonly slots: Pick<Slots, 'isFree'>;
  readonly log: Pick<Logger, 'warn'>;
  openShares(): Promise<readonly OpenShare[]>;
  /** Reads the slots of all hosts. Default: this host is the only one. */
  readonly fleetSlots?: () => Promise<FleetSlots>;
  /** Starts a worker, and returns the function that stops it. */
  start(options: WorkerOptions): Promise<() => void>;
}

/** Polls a queue for each open run and sweep, until the signal aborts. */
export async function watchShares(options: WatchOptions, signal: AbortSignal): Promise<void> {
  const running = new Map<string, () => void>();
  let fleetAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    try {
      const shares = await options.openShares();
      if (options.fleetSlots && shares.length > 1 && performance.now() - fleetAtMs >= askFleetMs) {
        options.turns.inFleet(await options.fleetSlots());
        fleetAtMs = performance.now();
      }
      await follow(options, running, shares);
    } catch (error) {
      // Known runs continue meanwhile.
      if (!signal.aborted) options.log.warn({ error }, 'could not look for new runs and sweeps; the host tries again');
    }
    await sleep(options.slots.isFree(0) ? askFreeMs : askFullMs, undefined, { signal, ref: false }).catch(() => {});
  }
}

async function follow(
  { turns, placement, start }: WatchOptions,
  running: Map<string, () => void>,
  shares: readonly OpenShare[],
): Promise<void> {
  const queues = shares.map((one) => ({ ...one, name: sharePlacementQueue(one.share) }));
  for (const queue of queues) {
    turns.of(queue);
    if (!running.has(queue.name)) running.set(queue.name, await start(workerOf(queue, { turns, placement })));
  }
  const open = new Set(queues.map(({ name }) => name));
  for (const [name, stop] of running) {
    if (open.has(name)) continue;
    running.delete(name);
    turns.remove(name);
    stop();
  }
}

const workerOf = (queue: PlacementQueue, { turns, placement }: PlacementWorkerDependencies): WorkerOptions => ({
  ...onePoller,
  taskQueue: queue.name,
  activities: placement,
  tuner: placementTuner(turns.of(queue)),
  maxEagerActivityReservationsPerWorkflowTask: 0,
});

import type { Host } from '../activities/host/host.ts';
import { createPlacement } from '../activities/host/placement.ts';
import { createPlacementTurns } from '../activities/host/placement-turns.ts';
import { createSweepShare, watchTraining } from '../activities/host/sweep-share.ts';
import { readFleetSlots } from '../infra/hosts/fleet-slots.ts';
import type { Config } from '../infra/settings/config.ts';
import type { SharedState } from '../infra/store/shared-state.ts';
import { backlogOf } from '../infra/temporal/backlog.ts';
import { openShares } from '../infra/temporal/shares.ts';
import { type PlacementWorkerDependencies, watchShares } from './placement-workers.ts';
import type { WorkerProcess } from './process.ts';

interface PlacingContext {
  readonly config: Pick<Config, 'capacity' | 'sweepShare' | 'createsPerSecond'>;
  readonly host: Host;
  readonly shared: Pick<SharedState, 'hosts' | 'rollouts'>;
  readonly process: Pick<WorkerProcess, 'client' | 'log' | 'startWorker'>;
}

/** Begins to give the free slots of a host to the rollouts of open runs and sweeps. Ends with the signal. */
export function placeRollouts(
  { config, host, shared: { hosts, rollouts }, process: { client, log, startWorker } }: PlacingContext,
  signal: AbortSignal,
): PlacementWorkerDependencies {
  const { capacity, sweepShare, createsPerSecond } = config;
  const { name, slots } = host;
  const share = createSweepShare(slots, sweepShare, watchTraining(client));
  const turns = createPlacementTurns({ slots, share, backlogOf: (queue) => backlogOf(client, queue) });
  const placement = createPlacement({
    ...host,
    rollouts,
    turns,
    limitsCreations: createsPerSecond !== null,
  });
  void watchShares(
    {
      turns,
      placement,
      slots,
      log,
      openShares: () => openShares(client),
      fleetSlots: () => readFleetSlots(hosts, { name, capacity }),
      start: startWorker,
    },
    signal,
  );
  return { turns, placement };
}

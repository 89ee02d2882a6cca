import type { WorkerOptions } from '@temporalio/worker';
import { createAdoption } from '../activities/host/adopt.ts';
import type { Host } from '../activities/host/host.ts';
import type { GatewayControl } from '../infra/gateway/control.ts';
import { adoptionQueue } from '../workflows/contracts/queues.ts';
import { isRemote } from '../workflows/contracts/sandbox-kinds.ts';
import { type SlotSource, slotTuner, whileOpen } from './slot-tuner.ts';

/** An adoption is short, and its agent already waits. */
const unbounded: SlotSource = { reserve: async () => undefined, tryReserve: () => true, settle: () => undefined };

/** The workers with which a host that takes new work adopts sandboxes from lost ones: one for each kind that outlives its host. */
export function adoptionWorkers(host: Host, gateway: Pick<GatewayControl, 'adopt'>): readonly WorkerOptions[] {
  const activities = { ...createAdoption(host, gateway) };
  const tuner = slotTuner(whileOpen(host.intake, unbounded));
  return [...host.providers.all.keys()]
    .filter(isRemote)
    .map((kind) => ({ taskQueue: adoptionQueue(kind), activities, tuner }));
}

import { cpuBetween, type Snapshot, secondsBetween, transitionsPerSecond, writesPerSecond } from '../load/snapshot.ts';
import type { ObservedFleet } from './observe.ts';

/** The work of the Temporal server in one phase, per second. */
export interface PhaseFigures {
  readonly name: string;
  readonly seconds: number;
  readonly transitions: number;
  /** Writes to the database. */
  readonly writes: number;
}

export interface ProcessFigures {
  readonly name: string;
  /** Memory by proportional shares, in MB: before any rollout started, and the most. */
  readonly idleMb: number;
  readonly peakMb: number;
  /** CPU time for a rollout that starts, and then sleeps or waits. */
  readonly startCpuMs: number;
  /** CPU time for a rollout that ends and the next one that takes its place. */
  readonly turnCpuMs: number;
  /** Percent of a core while all rollouts sleep or wait. */
  readonly waitingCpuPercent: number;
}

export interface FleetFigures {
  readonly asked: { readonly asleep: number; readonly waiting: number };
  readonly started: number;
  readonly asleep: number;
  readonly waiting: number;
  readonly limitedBy: string | null;
  readonly phases: readonly PhaseFigures[];
  readonly processes: readonly ProcessFigures[];
  readonly ended: number;
  readonly scored: number;
  /** Seconds for which the rollouts that ended had waited for their places, most of which were free. */
  readonly placed: { readonly medianSec: number; readonly mostSec: number };
}

export function fleetFiguresOf(seen: ObservedFleet): FleetFigures {
  const { asleep, waiting, reached, idle, full, slept, turned, ended } = seen;
  const placed = ended.map(({ stageSeconds }) => stageSeconds.placeRollout ?? 0).toSorted((a, b) => a - b);
  return {
    asked: { asleep, waiting },
    ...reached,
    limitedBy: seen.limitedBy,
    phases: [
      phase('starting', idle, full),
      phase('asleep and waiting', full, slept),
      phase('turning over', slept, turned),
    ],
    processes: idle.processes.map(({ name, memoryMb }) => ({
      name,
      idleMb: memoryMb,
      peakMb: seen.peaksMb.get(name) ?? 0,
      startCpuMs: cpuBetween(name, idle, full) / reached.started,
      turnCpuMs: cpuBetween(name, slept, turned) / Math.max(1, ended.length),
      waitingCpuPercent: cpuBetween(name, full, slept) / secondsBetween(full, slept) / 10,
    })),
    ended: ended.length,
    scored: ended.filter(({ outcome }) => outcome === 'scored').length,
    placed: { medianSec: placed[Math.floor(placed.length / 2)] ?? 0, mostSec: placed.at(-1) ?? 0 },
  };
}

const phase = (name: string, from: Snapshot, to: Snapshot): PhaseFigures => ({
  name,
  seconds: secondsBetween(from, to),
  transitions: transitionsPerSecond(from, to),
  writes: writesPerSecond(from, to),
});

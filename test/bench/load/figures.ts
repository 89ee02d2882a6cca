import type { Observed } from './cell.ts';
import { sumOf } from './metrics.ts';
import { cpuBetween, type Snapshot, secondsBetween, writesPerSecond } from './snapshot.ts';

export interface ProcessFigures {
  readonly name: string;
  /** Memory by proportional shares, in MB: before the agents started, and the most. */
  readonly idleMb: number;
  readonly peakMb: number;
  readonly cpuMsPerRollout: number;
  /** Percent of a core that it takes while all agents sleep. */
  readonly asleepCpuPercent: number;
}

/** The figures of one cell. Rates are per second. */
export interface LoadFigures {
  readonly sandbox: string;
  readonly agents: number;
  readonly lanes: number;
  readonly evaluations: number;
  readonly asleep: number;
  readonly limitedBy: string | null;
  readonly untilAtWorkSec: number;
  readonly drainSec: number;
  readonly drainRate: number;
  /** Whole rollouts at four at once. */
  readonly fourRate: number;
  /** Whole rollouts of all agents at once, without the time for which they slept. */
  readonly wholeRate: number;
  readonly outcomes: Readonly<Record<string, number>>;
  /** Activity attempts beyond the first, by stage. */
  readonly again: Readonly<Record<string, number>>;
  /** The stages that were tried again, by the last failure before the end of each. */
  readonly againBecause: Readonly<Record<string, number>>;
  readonly restarts: number;
  readonly processes: readonly ProcessFigures[];
  /** Writes of the Temporal server to its database. */
  readonly writes: {
    readonly perRollout: number;
    readonly whileStarting: number;
    readonly whileAsleep: number;
    readonly whileDraining: number;
  };
  /** Workflows that the control worker kept in memory while the agents slept. */
  readonly cached: { readonly workflows: number; readonly mbEach: number; readonly misses: number };
}

export function figuresOf(seen: Observed): LoadFigures {
  const { agents, idle, atWork, slept, drained, rollouts } = seen;
  const untilAtWorkSec = secondsBetween(idle, atWork);
  const drainSec = (Math.max(...rollouts.map(({ endedAtMs }) => endedAtMs)) - slept.atMs) / 1000;
  const stages = rollouts.flatMap((rollout) => rollout.stages.filter(({ attempt }) => attempt !== 1));
  return {
    sandbox: seen.sandbox,
    agents,
    lanes: seen.lanes,
    evaluations: seen.evaluations,
    asleep: seen.asleep,
    limitedBy: seen.limitedBy,
    untilAtWorkSec,
    drainSec,
    drainRate: agents / drainSec,
    fourRate: seen.fourPerSecond,
    wholeRate: agents / (untilAtWorkSec + drainSec),
    outcomes: totals(rollouts, ({ outcome }) => [outcome, 1]),
    again: totals(stages, ({ stage, attempt }) => [stage, Math.abs(attempt - 1)]),
    againBecause: totals(stages, ({ stage, attempt, lastFailure }) => {
      return [`${stage}: ${attempt === 0 ? 'never began' : lastFailure}`, 1];
    }),
    restarts: seen.restarts,
    processes: processFigures(seen),
    writes: {
      perRollout: (drained.writes - idle.writes) / agents,
      whileStarting: writesPerSecond(idle, atWork),
      whileAsleep: writesPerSecond(atWork, slept),
      whileDraining: writesPerSecond(slept, drained),
    },
    cached: cachedWorkflows(seen),
  };
}

function processFigures({ agents, idle, atWork, slept, drained, peaksMb }: Observed): ProcessFigures[] {
  return idle.processes.map(({ name, memoryMb }) => ({
    name,
    idleMb: memoryMb,
    peakMb: peaksMb.get(name) ?? 0,
    cpuMsPerRollout: cpuBetween(name, idle, drained) / agents,
    asleepCpuPercent: cpuBetween(name, atWork, slept) / secondsBetween(atWork, slept) / 10,
  }));
}

function cachedWorkflows({ idle, slept, drained }: Observed): LoadFigures['cached'] {
  const sizeIn = ({ control }: Snapshot): number => sumOf(control, 'temporal_sticky_cache_size');
  const missesIn = ({ control }: Snapshot): number => sumOf(control, 'temporal_sticky_cache_miss');
  const memoryIn = ({ processes }: Snapshot): number => processes.find(({ name }) => name === 'control')?.memoryMb ?? 0;
  const workflows = sizeIn(slept);
  return {
    workflows,
    mbEach: (memoryIn(slept) - memoryIn(idle)) / Math.max(1, workflows - sizeIn(idle)),
    misses: missesIn(drained) - missesIn(idle),
  };
}

function totals<Item>(
  items: readonly Item[],
  entryOf: (item: Item) => readonly [string, number],
): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [name, count] of items.map(entryOf)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

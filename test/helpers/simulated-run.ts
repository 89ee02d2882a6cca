import { createRandom, type Random } from '../../infra/kits/embedded-policy/model/random.ts';
import { admissible, staleness } from '../../workflows/algorithms/staleness.ts';
import type { RunInput, RunRequest } from '../../workflows/contracts/run.ts';
import type { RunTally } from '../../workflows/run/run-tally.ts';
import { createRunTally } from '../../workflows/run/tally.ts';
import { groupSummary, stepResult } from './run-events.ts';
import { inputOfRun } from './run-input.ts';

/** A task: the median duration of its rollouts, where a step takes 0.5, and the share of them that pass. */
export interface SimulatedTask {
  readonly median: number;
  readonly pass: number;
}

/** The groups of a simulated run: which were started, and which were trained. */
export interface SimulatedRun {
  /** The share of each quarter of the tasks, from the fastest to the slowest, in the groups that were started. */
  readonly started: readonly number[];
  /** The same in the groups that were trained. */
  readonly trained: readonly number[];
  /** The mean pass rate of the tasks of the groups that were started. */
  readonly startedPass: number;
  /** The same of the groups that were trained. */
  readonly trainedPass: number;
  /** The number of groups that were started and not trained. */
  readonly untrained: number;
  /** The share of the groups' time that was spent on these. */
  readonly wasted: number;
  readonly largestStaleness: number;
  /** The time until the last step was made. */
  readonly wall: number;
}

const rolloutsPerGroup = 8;
const stepTakes = 0.5;
/** The standard deviation of the logarithm of the durations of one task's rollouts. */
const spread = 0.35;

/** Returns tasks with log-normal durations around 1, of which the slower ones pass less often. */
export function logNormalTasks(count: number, sigma: number, seed: number): readonly SimulatedTask[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => {
    const z = random.normal();
    return { median: Math.exp(sigma * z), pass: 1 / (1 + Math.exp(1.2 * z)) };
  });
}

/** Returns tasks of two kinds: this share of them takes `factor` times as long, and passes half as often. */
export const twoKinds = (count: number, share: number, factor: number): readonly SimulatedTask[] =>
  Array.from({ length: count }, (_, index) =>
    index < share * count ? { median: factor, pass: 0.3 } : { median: 1, pass: 0.6 },
  );

interface Group {
  readonly task: SimulatedTask;
  readonly version: number;
  readonly startedAt: number;
  endsAt: number;
  trainedAt: number | null;
}

/**
 * Drives the tally and the admission of a run by discrete events until the run is done, with as many slots as it wants. A group
 * lasts as long as its slowest rollout. Throws if nothing can happen any more before the last step.
 */
export function simulate(tasks: readonly SimulatedTask[], request: RunRequest, seed: number): SimulatedRun {
  const input = inputOfRun({ ...request, rolloutsPerGroup });
  const tally = createRunTally(input, null, 0);
  const random = createRandom(seed);
  const groups = new Map<number, Group>();
  let now = 0;
  let stepEndsAt = Number.POSITIVE_INFINITY;
  while (tally.step < input.steps) {
    if (stepEndsAt === Number.POSITIVE_INFINITY && tally.takeForStep() !== null) stepEndsAt = now + stepTakes;
    for (let free = freeFor(input, tally); free > 0; free -= 1) {
      const index = tally.admit();
      groups.set(index, startGroup(tasks, tally.policyVersion, now, random));
    }
    const [next, endsAt] = firstEnd(tally, groups);
    now = Math.min(endsAt, stepEndsAt);
    if (now === Number.POSITIVE_INFINITY) throw new Error(`expected an event after step ${tally.step}, got none`);
    if (endsAt < stepEndsAt) arrive(tally, next, groups, 'scored');
    else {
      for (const index of finishStep(tally)) Object.assign(groups.get(index) ?? {}, { trainedAt: tally.step });
      if (input.onStale === 'cancel') cancelStale(input, tally, groups, now);
      stepEndsAt = Number.POSITIVE_INFINITY;
    }
  }
  return summarise(tasks, [...groups.values()], now);
}

const freeFor = ({ groupsPerStep, maxStaleness, steps }: RunInput, tally: RunTally): number =>
  admissible({
    inFlight: tally.inFlight.size,
    ready: tally.ready.size,
    inStep: tally.inStep,
    groupsPerStep,
    maxStaleness,
    stepsLeft: steps - tally.step - (tally.inStep > 0 ? 1 : 0),
  });

function startGroup(tasks: readonly SimulatedTask[], version: number, now: number, random: Random): Group {
  const task = tasks[Math.floor(random.next() * tasks.length)] ?? { median: 1, pass: 1 };
  const rollouts = Array.from({ length: rolloutsPerGroup }, () => task.median * Math.exp(spread * random.normal()));
  return { task, version, startedAt: now, endsAt: now + Math.max(...rollouts), trainedAt: null };
}

function firstEnd({ inFlight }: RunTally, groups: ReadonlyMap<number, Group>): readonly [index: number, at: number] {
  let first: readonly [number, number] = [-1, Number.POSITIVE_INFINITY];
  for (const index of inFlight.keys()) {
    const { endsAt } = groups.get(index) ?? { endsAt: Number.POSITIVE_INFINITY };
    if (endsAt < first[1]) first = [index, endsAt];
  }
  return first;
}

function arrive(tally: RunTally, index: number, groups: ReadonlyMap<number, Group>, outcome: 'scored' | 'stale'): void {
  const minVersion = groups.get(index)?.version ?? 0;
  tally.arrive(groupSummary(index, minVersion, { [outcome]: rolloutsPerGroup }), false);
}

function finishStep(tally: RunTally): readonly number[] {
  const { groups = [] } = tally.takeForStep() ?? {};
  tally.finishStep(stepResult(tally.step + 1, { trained: groups.length }));
  return groups;
}

function cancelStale(input: RunInput, tally: RunTally, groups: ReadonlyMap<number, Group>, now: number): void {
  for (const [index, version] of [...tally.inFlight]) {
    if (staleness(tally.step + 1, version) <= input.maxStaleness) continue;
    tally.stops(index);
    Object.assign(groups.get(index) ?? {}, { endsAt: now });
    arrive(tally, index, groups, 'stale');
  }
}

function summarise(tasks: readonly SimulatedTask[], groups: readonly Group[], wall: number): SimulatedRun {
  const trained = groups.filter(({ trainedAt }) => trainedAt !== null);
  const untrained = groups.filter(({ trainedAt }) => trainedAt === null);
  const time = (some: readonly Group[]): number =>
    some.reduce((sum, { startedAt, endsAt }) => sum + Math.min(endsAt, wall) - startedAt, 0);
  const medians = tasks.map(({ median }) => median).sort((a, b) => a - b);
  const bounds = [0.25, 0.5, 0.75].map((share) => medians[Math.floor(share * medians.length)] ?? 0);
  const shares = (some: readonly Group[]): readonly number[] =>
    [0, 1, 2, 3].map((quarter) => {
      const inQuarter = some.filter(({ task }) => bounds.filter((bound) => task.median >= bound).length === quarter);
      return inQuarter.length / some.length;
    });
  const pass = (some: readonly Group[]): number => some.reduce((sum, { task }) => sum + task.pass, 0) / some.length;
  return {
    started: shares(groups),
    trained: shares(trained),
    startedPass: pass(groups),
    trainedPass: pass(trained),
    untrained: untrained.length,
    wasted: time(untrained) / time(groups),
    largestStaleness: Math.max(...trained.map(({ trainedAt, version }) => staleness(trainedAt ?? 0, version))),
    wall,
  };
}

import type { Client } from '@temporalio/client';
import { type CpuClock, type MeasuredProcess, openCpuClock } from './processes.ts';
import { type StageWindow, stageWindows } from './windows.ts';

/** The CPU time of each process during one stage in ms per rollout. */
export interface StageCpu {
  readonly stage: string;
  readonly wallMs: number;
  readonly cpuMs: readonly number[];
}

/** The name under which the time counts in which no stage was in progress: workflow tasks, and the start and the end. */
const between = 'between stages';
const sampleEveryMs = 4;

interface Sample {
  readonly atMs: number;
  readonly cpuMs: readonly number[];
}

/**
 * Runs rollouts one after another, and measures what each process does in each stage. Where two stages are in progress the
 * time counts for the one that ends first.
 */
export async function cpuByStage(
  client: Client,
  processes: readonly MeasuredProcess[],
  rollouts: number,
  oneRollout: () => Promise<string>,
): Promise<readonly StageCpu[]> {
  const clocks = processes.map(openCpuClock);
  const sums = new Map<string, StageCpu>();
  try {
    for (let count = 0; count < rollouts; count += 1) {
      const { samples, workflowId } = await sampled(clocks, oneRollout);
      add(sums, samples, await stageWindows(client, workflowId));
    }
  } finally {
    for (const clock of clocks) clock.close();
  }
  return [...sums.values()].map(({ stage, wallMs, cpuMs }) => ({
    stage,
    wallMs: wallMs / rollouts,
    cpuMs: cpuMs.map((ms) => ms / rollouts),
  }));
}

async function sampled(
  clocks: readonly CpuClock[],
  oneRollout: () => Promise<string>,
): Promise<{ readonly samples: readonly Sample[]; readonly workflowId: string }> {
  const samples: Sample[] = [];
  const take = (): void => void samples.push({ atMs: Date.now(), cpuMs: clocks.map((clock) => clock.readMs()) });
  take();
  const timer = setInterval(take, sampleEveryMs);
  try {
    const workflowId = await oneRollout();
    take();
    return { samples, workflowId };
  } finally {
    clearInterval(timer);
  }
}

function add(sums: Map<string, StageCpu>, samples: readonly Sample[], windows: readonly StageWindow[]): void {
  samples.forEach((sample, index) => {
    const before = samples[index - 1];
    if (before === undefined) return;
    const middleMs = (before.atMs + sample.atMs) / 2;
    const within = windows.find(({ scheduledMs, endedMs }) => scheduledMs <= middleMs && middleMs < endedMs);
    const stage = within?.stage ?? between;
    const sum = sums.get(stage);
    const spent = sample.cpuMs.map((ms, at) => ms - (before.cpuMs[at] ?? ms));
    sums.set(stage, {
      stage,
      wallMs: (sum?.wallMs ?? 0) + sample.atMs - before.atMs,
      cpuMs: spent.map((ms, at) => ms + (sum?.cpuMs[at] ?? 0)),
    });
  });
}

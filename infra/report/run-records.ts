import { z } from 'zod';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import { type Fate, fates } from '../../workflows/contracts/outcome.ts';
import type { StepResult } from '../../workflows/contracts/run.ts';
import type { Records } from '../store/records.ts';

/** What a run left in its records: its finished steps, and every group that ended. */
export interface RunRecords {
  readonly steps: readonly StepRecord[];
  readonly groups: readonly GroupReport[];
}

export interface StepRecord {
  readonly result: StepResult;
  readonly trained: readonly number[];
  readonly zeroVariance: readonly number[];
  /** [number of the group, fate] of groups that ended without a step since the last one. */
  readonly dropped: readonly (readonly [number, Fate])[];
  /** Milliseconds since the epoch. */
  readonly recordedAt: number;
}

const index = z.int().min(0);
const stepRecord = z.looseObject({
  result: z.looseObject({ step: z.int().min(1), groups: z.record(z.string(), z.number()) }),
  trained: z.array(index),
  zeroVariance: z.array(index),
  dropped: z.array(z.tuple([index, z.enum(fates)])),
  recordedAt: z.number(),
});
const groupReport = z.looseObject({ index, task: z.string(), rollouts: z.array(z.looseObject({})) });

export async function readRunRecords(records: Records, runKey: string): Promise<RunRecords> {
  const names = await records.names(runKey);
  const read = async (prefix: string): Promise<readonly unknown[]> =>
    Promise.all(numbered(names, prefix).map((name) => records.read(runKey, name)));
  return {
    steps: (await read('step-')).map((value) => stepRecord.parse(value) as unknown as StepRecord),
    groups: (await read('group-')).map((value) => groupReport.parse(value) as unknown as GroupReport),
  };
}

/** One finished step, or null while it isn't: for whoever follows a run. */
export async function findStep(records: Records, runKey: string, step: number): Promise<StepRecord | null> {
  const value = await records.find(runKey, `step-${step}`);
  return value === null ? null : (stepRecord.parse(value) as unknown as StepRecord);
}

function numbered(names: readonly string[], prefix: string): string[] {
  const number = (name: string): number => Number(name.slice(prefix.length));
  return names
    .filter((name) => name.startsWith(prefix) && Number.isInteger(number(name)))
    .sort((a, b) => number(a) - number(b));
}

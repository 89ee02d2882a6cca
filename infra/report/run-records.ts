import { z } from 'zod';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import { type Fate, fates } from '../../workflows/contracts/outcome.ts';
import type { StepResult } from '../../workflows/contracts/run.ts';
import type { Records } from '../store/records.ts';

/** The records of a run: its finished steps and the groups that ended. */
export interface RunRecords {
  readonly steps: readonly StepRecord[];
  readonly groups: readonly GroupReport[];
}

export interface StepRecord {
  readonly result: StepResult;
  readonly trained: readonly number[];
  readonly zeroVariance: readonly number[];
  /** Pairs of index and fate of the groups that ended untrained since the previous step. */
  readonly dropped: readonly (readonly [number, Fate])[];
  /** The time of the record, in milliseconds since the epoch. */
  readonly recordedAt: number;
}

const index = z.int().min(0);
const stepRecord = z.looseObject({
  result: z.looseObject({
    step: z.int().min(1),
    groups: z.record(z.string(), z.number()),
    equalGroups: z.record(z.string(), z.number()),
  }),
  trained: z.array(index),
  zeroVariance: z.array(index),
  dropped: z.array(z.tuple([index, z.enum(fates)])),
  recordedAt: z.number(),
});
const groupReport = z.looseObject({ index, task: z.string(), rollouts: z.array(z.looseObject({})) });

/** Reads all records of a run. */
export async function readRunRecords(records: Records, runKey: string): Promise<RunRecords> {
  const names = await records.names(runKey);
  const read = async (prefix: string): Promise<readonly unknown[]> =>
    Promise.all(numbered(names, prefix).map((name) => records.read(runKey, name)));
  return {
    steps: (await read('step-')).map((value) => stepRecord.parse(value) as unknown as StepRecord),
    groups: (await read('group-')).map((value) => groupReport.parse(value) as unknown as GroupReport),
  };
}

/** Reads the record of one step, or returns null while the step is not finished. */
export async function findStep(records: Records, runKey: string, step: number): Promise<StepRecord | null> {
  const value = await records.find(runKey, `step-${step}`);
  return value === null ? null : (stepRecord.parse(value) as unknown as StepRecord);
}

/** The names with a prefix and a number, sorted by the number. */
function numbered(names: readonly string[], prefix: string): string[] {
  const number = (name: string): number => Number(name.slice(prefix.length));
  return names
    .filter((name) => name.startsWith(prefix) && Number.isInteger(number(name)))
    .sort((a, b) => number(a) - number(b));
}

/** The fate of every group that ended between the previous step and this one. */
export function fatesOf({ trained, zeroVariance, dropped }: StepRecord): Map<number, Fate> {
  return new Map<number, Fate>([
    ...trained.map((index) => [index, 'trained'] as const),
    ...zeroVariance.map((index) => [index, 'zero-variance'] as const),
    ...dropped,
  ]);
}

/** The fates of all groups that have one. */
export const settledFates = ({ steps }: Pick<RunRecords, 'steps'>): Map<number, Fate> =>
  new Map(steps.flatMap((record) => [...fatesOf(record)]));

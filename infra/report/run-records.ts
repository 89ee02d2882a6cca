import { z } from 'zod';
import type { GroupReport } from '../../workflows/contracts/group.ts';
import { shortKey } from '../../workflows/contracts/ids.ts';
import { type Fate, fates } from '../../workflows/contracts/outcome.ts';
import type { StepResult } from '../../workflows/contracts/run.ts';
import type { RunEnd } from '../../workflows/contracts/start-record.ts';
import type { SweepReport } from '../../workflows/contracts/sweep.ts';
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

/** The name of the record of a run's end. */
export const runEndName = 'run';
const runEnd = z.looseObject({
  status: z.looseObject({ run: z.string(), runKey: z.string(), step: index }),
  end: z.looseObject({ kind: z.string(), message: z.string() }).nullable(),
  endedAt: z.number(),
});

/** Reads how a run ended; null while it runs, and for one that was terminated. */
export async function findRunEnd(records: Records, runKey: string): Promise<RunEnd | null> {
  const value = await records.find(runKey, runEndName);
  return value === null ? null : (runEnd.parse(value) as unknown as RunEnd);
}

/** Names the record, in those of a run, of the report of a sweep that evaluated its policy. Names sort by the sweeps' starts. */
export const sweepOfRun = ({ sweepKey, startedAt }: Pick<SweepReport, 'sweepKey' | 'startedAt'>): string =>
  `sweep-${startedAt}-${shortKey(sweepKey)}`;

const recordedReport = z.looseObject({ report: z.looseObject({ digest: z.string() }) });

/** Returns the digests of the reports of the newest sweeps that evaluated a run's policy. */
export async function sweepReportsOf(records: Records, runKey: string, most: number): Promise<readonly string[]> {
  const names = (await records.names(runKey)).filter((name) => name.startsWith('sweep-'));
  const newest = names.toSorted().slice(-most);
  const found = await Promise.all(newest.map((name) => records.read(runKey, name)));
  return found.map((value) => recordedReport.parse(value).report.digest);
}

/** Finds the digest of the report of a sweep or regrade that has ended or was cancelled; null while there is none. */
export async function findReportOf(records: Records, key: string, name: 'sweep' | 'regrade'): Promise<string | null> {
  const found = recordedReport.safeParse(await records.find(key, name));
  return found.success ? found.data.report.digest : null;
}

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

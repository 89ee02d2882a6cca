/** A mean over the tasks that two sweeps counted, in both, with the 95 % interval and the p-value of the difference. */
export interface ComparedMean {
  readonly before: number;
  readonly after: number;
  readonly difference: number;
  readonly low: number;
  readonly high: number;
  readonly pValue: number;
  readonly method: 'exact' | 'random';
}

/** Two sweeps compared over the tasks that both counted; see algorithms/compare-sweeps.ts. */
export interface SweepComparison {
  readonly tasks: number;
  readonly onlyBefore: number;
  readonly onlyAfter: number;
  readonly passRate: ComparedMean;
  readonly reward: ComparedMean;
  /** Tasks that passed in one sweep and failed in the other, the worst loss first. */
  readonly flipped: readonly { readonly task: string; readonly before: number; readonly after: number }[];
  /** The number of such tasks to expect if the sweeps do not differ at any task. */
  readonly flippedByChance: number;
}

import { z } from 'zod';
import { integer, text } from './input.ts';
import type { Count, Outcome } from './outcome.ts';
import { rolloutSettings } from './rollout.ts';

export const sweepInput = z.strictObject({
  tasks: text('a task set, for example generated:test/1'),
  /** The first so many tasks of the set. */
  count: integer(1, 100_000, 'tasks').default(32),
  /** Rollouts in flight at once. */
  concurrency: integer(1, 500, 'rollouts').default(16),
  seed: integer(0, 2 ** 31 - 1).default(1),
  settings: rolloutSettings.prefault({}),
});
export type SweepInput = z.output<typeof sweepInput>;
export type SweepRequest = z.input<typeof sweepInput>;

export interface SweepResult {
  readonly tasks: number;
  readonly outcomes: Count<Outcome>;
  /** Over the scored rollouts; null when there are none. */
  readonly meanReward: number | null;
}

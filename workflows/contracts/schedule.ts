import { z } from 'zod';
import { integer, text } from './input.ts';

/** What temper notes on a schedule of sweeps, so that it finds its own again among all of a namespace. */
export const scheduleMemo = z.object({
  temper: z.literal('evaluationSweep'),
  /** What it evaluates, and when, in words. */
  about: z.string(),
  when: z.string(),
  /** The run at whose steps it is triggered; null: a clock does it. */
  run: text('the workflow id of a run').nullable(),
  /** It is triggered after each step that is a multiple of this. */
  everySteps: integer(1, 1_000_000, 'steps').nullable(),
});
export type ScheduleMemo = z.output<typeof scheduleMemo>;

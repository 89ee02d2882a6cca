import { z } from 'zod';
import { integer, text } from './input.ts';

/**
 * The memo of a schedule of sweeps, by which temper recognises its own schedules in a namespace. The server keeps no field that is
 * null.
 */
export const scheduleMemo = z.object({
  temper: z.literal('evaluationSweep').describe('Marks the schedule as one of temper.'),
  about: z.string().describe('What the sweeps evaluate, in words.'),
  when: z.string().describe('When a sweep starts, in words.'),
  run: text('the workflow id of a run')
    .nullable()
    .default(null)
    .describe('The workflow id of the run whose steps trigger the schedule; null when a clock does.'),
  everySteps: integer(1, 1_000_000, 'steps')
    .nullable()
    .default(null)
    .describe(
      'The schedule is triggered after each step that is a multiple of this number; null when a clock does it.',
    ),
});
export type ScheduleMemo = z.output<typeof scheduleMemo>;

import { z } from 'zod';
import { tricks } from './flags.ts';
import { oneOf } from './input.ts';

/**
 * The use that a run or a sweep makes of the reward of a rollout that is flagged for a trick. The rollout's own result and verdict
 * stay as they were measured.
 */
export const onFlag = z
  .partialRecord(z.enum(tricks), oneOf(['keep', 'exclude', 'zero']), {
    error: `expected actions by trick, of ${tricks.join(', ')}`,
  })
  .describe(
    'What happens to the reward of a rollout that is flagged, by trick: `keep` it, `exclude` the rollout from the comparison ' +
      'of its group or from the score of the sweep, or count it as `zero`. Of several, `zero` comes first, then `exclude`. ' +
      'A reward of 0 counts always. ' +
      'Default: `keep` for all.',
  );
export type OnFlag = Readonly<z.output<typeof onFlag>>;

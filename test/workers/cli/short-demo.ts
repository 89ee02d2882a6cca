import { demoRecipe } from '../../../workers/cli/commands/demo/recipe.ts';
import { demoCommand } from '../../../workers/cli/commands/demo.ts';

/** Runs `temper demo` with a short warm-up that shows more right edits, and less of all else; takes its options. */
const short = demoCommand({
  run: (seed) => ({
    ...demoRecipe.run(seed),
    groupsPerStep: 3,
    warmUp: { steps: 250, examplesPerStep: 8, learningRate: 3e-3, learningRateFall: 80, rightShare: 0.6 },
  }),
  heldOut: (seed) => ({ ...demoRecipe.heldOut(seed), count: 12 }),
});
await short.parseAsync(process.argv.slice(2), { from: 'user' });

import { join } from 'node:path';
import { demoRun, heldOut } from '../../workers/cli/commands/demo/recipe.ts';
import { runInput } from '../../workflows/contracts/run.ts';
import { runExperiment } from './experiment.ts';

/**
 * Repeats the search that led to workers/cli/commands/demo/recipe.ts: the run of each seed without sandboxes, one line per
 * seed. Usage: `node test/recipe/search.ts [seeds] [overrides]`. Overrides are JSON merged into the run, for example
 *
 *     node test/recipe/search.ts 0-9
 *     node test/recipe/search.ts 3 '{"training":{"learningRate":0.002}}'
 */

const [seeds = '0-9', overrides = '{}'] = process.argv.slice(2);
const [from = 0, to = from] = seeds.split('-').map(Number);
const modelDir = join(import.meta.dirname, '../../infra/tasks/generated/temper-tiny');
const write = (line: string): unknown => process.stdout.write(`${line}\n`);

write('seed  first fifth  last fifth  held-out before  after  at topP 1  warm-up s  all s');
for (let seed = from; seed <= to; seed += 1) {
  const base = demoRun(seed);
  const given: typeof base = JSON.parse(overrides);
  const run = runInput.parse({
    ...base,
    ...given,
    training: { ...base.training, ...given.training },
    warmUp: { ...base.warmUp, ...given.warmUp },
  });
  const { warmUp } = run;
  if (warmUp === undefined) throw new Error('the run has no warm-up; do not override it with null');
  const log = (line: string): unknown => process.stderr.write(`  ${line}\n`);
  const result = await runExperiment({ modelDir, run, warmUp, heldOut: heldOut(seed), log });
  const fifth = Math.max(1, Math.round(run.steps / 5));
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const columns = [
    String(seed).padEnd(4),
    mean(result.rewards.slice(0, fifth)).toFixed(3).padStart(12),
    mean(result.rewards.slice(-fifth)).toFixed(3).padStart(11),
    result.heldOutBefore.toFixed(3).padStart(16),
    result.heldOutAfter.toFixed(3).padStart(6),
    result.heldOutAtOne.toFixed(3).padStart(10),
    result.warmUpSeconds.toFixed(1).padStart(10),
    result.seconds.toFixed(1).padStart(6),
  ];
  write(columns.join(' '));
}

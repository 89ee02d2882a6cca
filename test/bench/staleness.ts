/**
 * Simulates runs under each rule for stale groups (`onStale`), and prints as a table what each does to the sample and to the
 * wall time. The tally and the admission are the product's own; durations are drawn, and there are as many slots as a run
 * wants. The time is in medians of a rollout.
 */
import type { RunRequest } from '../../workflows/contracts/run.ts';
import { logNormalTasks, type SimulatedTask, simulate, twoKinds } from '../helpers/simulated-run.ts';

const sets: Readonly<Record<string, readonly SimulatedTask[]>> = {
  'log-normal, σ 0.4': logNormalTasks(200, 0.4, 7),
  'log-normal, σ 0.8': logNormalTasks(200, 0.8, 7),
  'half take 2 × as long': twoKinds(200, 0.5, 2),
  '30 % take 6 × as long': twoKinds(200, 0.3, 6),
};
const bounds = [1, 2, 4] as const;
const percent = (share = 0): number => Math.round(100 * share);

console.log(`| Tasks | \`onStale\` | slow tasks | pass rate | time wasted | staleness | wall time |`);
console.log('|---|---|---|---|---|---|---|');
for (const [name, tasks] of Object.entries(sets)) {
  for (const onStale of ['wait', 'cancel', 'withhold', 'keep'] as const) {
    const runs = bounds.map((maxStaleness) => {
      const request: RunRequest = { tasks: 'generated:train/1', steps: 300, groupsPerStep: 8, maxStaleness, onStale };
      return simulate(tasks, request, 1);
    });
    const each = (figure: (run: (typeof runs)[number]) => number | string): string => runs.map(figure).join(', ');
    const cells = [
      name,
      `\`${onStale}\``,
      `${percent(runs[0]?.started.at(-1))} % → ${each(({ trained }) => percent(trained.at(-1)))} %`,
      `${runs[0]?.startedPass.toFixed(2)} → ${each(({ trainedPass }) => trainedPass.toFixed(2))}`,
      `${each(({ wasted }) => percent(wasted))} %`,
      each(({ largestStaleness }) => largestStaleness),
      each(({ wall }) => Math.round(wall)),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

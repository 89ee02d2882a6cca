import { slowQuarterWarning } from '../../workflows/algorithms/group-durations.ts';
import type { Count, Fate } from '../../workflows/contracts/outcome.ts';
import { short } from './charts/step-bars.ts';
import type { GroupFates } from './group-fates.ts';
import { html, type Markup } from './markup.ts';

/** The largest number of tasks on the page, to keep it readable. */
const maxTasks = 200;
const quarterNames = ['fastest quarter', 'second', 'third', 'slowest quarter'] as const;

/** Renders the fates and rewards of the groups by how long they took, and by task. */
export function groupSection({ durations, tasks }: GroupFates): Markup | null {
  const { quarters, scoredReward, stepReward } = durations;
  if (quarters.length === 0) return null;
  const warning = slowQuarterWarning(durations);
  return html`<section id="groups"><h2>Which groups were trained</h2>
    <p class="key">Mean reward: <b>${reward(scoredReward)}</b> over all scored rollouts, <b>${reward(stepReward)}</b> over those of groups that steps took. A group lasts as long as its slowest rollout, without the wait for a slot.</p>
    ${warning === null ? null : html`<p class="key">Warning: ${warning}.</p>`}
    <table><thead><tr><th>groups by duration</th><th class="n">up to seconds</th><th class="n">groups</th><th class="n">in steps</th><th>fates</th><th class="n">mean reward</th></tr></thead><tbody>
    ${quarters.map(
      ({ seconds, groups, inSteps, fates, meanReward }, quarter) =>
        html`<tr><td>${quarterNames[quarter] ?? ''}</td><td class="n">${short(seconds)}</td><td class="n">${groups}</td><td class="n">${Math.round(100 * inSteps)} %</td><td>${fatesText(fates)}</td><td class="n">${reward(meanReward)}</td></tr>`,
    )}</tbody></table>
    <details><summary>Task by task, the longest first</summary>
    <table><thead><tr><th>task</th><th class="n">mean seconds</th><th class="n">groups</th><th>fates</th><th class="n">mean reward</th></tr></thead><tbody>
    ${tasks
      .slice(0, maxTasks)
      .map(
        ({ task, seconds, groups, fates, meanReward }) =>
          html`<tr><td><code>${task}</code></td><td class="n">${short(seconds)}</td><td class="n">${groups}</td><td>${fatesText(fates)}</td><td class="n">${reward(meanReward)}</td></tr>`,
      )}</tbody></table>${tasks.length > maxTasks ? html`<p class="key">… and ${tasks.length - maxTasks} more.</p>` : null}</details></section>`;
}

const reward = (value: number | null): string => value?.toFixed(2) ?? '–';

const fatesText = (fates: Partial<Count<Fate>>): string =>
  Object.entries(fates)
    .map(([fate, count]) => `${fate} ${count}`)
    .join(', ');

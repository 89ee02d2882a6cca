import { flagsText } from '../../workflows/algorithms/flags.ts';
import type { ReportData } from './data.ts';
import { html, type Markup } from './markup.ts';

/** What looked like tricks in the run's rollouts; none: no section. */
export function flagSection({ flags, flagged }: Pick<ReportData, 'flags' | 'flagged'>): Markup | null {
  const text = flagsText(flagged);
  if (text === null) return null;
  return html`<section id="flags"><h2>Flags</h2>
    <p class="key">${text}. For people to look at: no flag changes a reward, and honest work may look so as well.</p>
    <table><thead><tr><th>trick</th><th class="n">rollouts</th><th class="n">mean reward</th><th>for example, with the highest reward</th></tr></thead><tbody>
    ${flags.map(
      ({ trick, count, meanReward, workflowId }) =>
        html`<tr><td><code>${trick}</code></td><td class="n">${count}</td><td class="n">${meanReward?.toFixed(2) ?? '–'}</td><td><small>${workflowId}</small></td></tr>`,
    )}</tbody></table></section>`;
}

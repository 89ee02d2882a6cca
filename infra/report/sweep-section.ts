import { compareSweeps } from '../../workflows/algorithms/compare-sweeps.ts';
import { flagsText } from '../../workflows/algorithms/flags.ts';
import { holm } from '../../workflows/algorithms/holm.ts';
import type { Estimate, SweepReport, TaskScore } from '../../workflows/contracts/sweep.ts';
import { type Frame, px, xScale } from './charts/scale.ts';
import { short } from './charts/step-bars.ts';
import { costsOfLedger, moneyText } from './cost-table.ts';
import { html, type Markup } from './markup.ts';
import type { Prices } from './prices.ts';

/** The maximum number of rows per task table, to keep the page readable. The JSON contains all. */
const maxRows = 200;

const intervalFrame: Frame = { width: 180, height: 16, left: 4, right: 4, top: 2, bottom: 2 };

/** Renders the evaluation sweeps, the difference between the first and the last, and the tasks of the last. */
export function sweepSection(sweeps: readonly SweepReport[], prices: Prices | null): Markup | null {
  const [first] = sweeps;
  const last = sweeps.at(-1);
  if (first === undefined || last === undefined) return null;
  return html`<section id="evaluations"><h2>Evaluations</h2>
    <table><thead><tr><th>sweep</th><th class="n">version or model</th><th>pass@1 with 95 % interval</th><th></th><th>pass@k</th><th>counted</th><th class="n">tokens${prices === null ? null : ', money'}</th></tr></thead>
    <tbody>${sweeps.map((sweep) => row(sweep, prices))}</tbody></table>
    ${comparison(first, sweeps.slice(1))}
    <details><summary>${last.sweep}, task by task</summary>${tasks(last.taskScores)}</details></section>`;
}

function row(report: SweepReport, prices: Prices | null): Markup {
  const { sweep, input, result } = report;
  const { passAt1, passAtK, policyVersion, upstream, counted, unscored, leftOut, cost, endedEarly, flags } = result;
  const flagged = flagsText(flags);
  const costs = costsOfLedger(cost.ledger, { ...report, ...result }, prices);
  const money = costs && moneyText(costs);
  const left = Object.entries(leftOut).flatMap(([why, count]) => (count === 0 ? [] : [`${why} ${count}`]));
  return html`<tr><td><code>${sweep}</code><br><small>${result.tasks} tasks of ${input.tasks}, ${result.attempts} attempts, ${input.settings.agent}${upstream === undefined ? null : `, upstream ${upstream.name}`}</small></td>
    <td class="n">${upstream?.model ?? policyVersion ?? '–'}</td>
    <td>${passAt1 === null ? '–' : html`<b>${passAt1.mean.toFixed(3)}</b> <small>${passAt1.low.toFixed(3)} to ${passAt1.high.toFixed(3)}, ${passAt1.tasks} tasks</small>`}${endedEarly === null ? null : html`<br><small>ended early: ${endedEarly}; only the attempts that had ended count, which are the fast ones</small>`}</td>
    <td>${passAt1 === null ? null : intervalMark(passAt1)}</td>
    <td>${passAtK.filter(({ k }) => k > 1).map(({ k, mean, low, high }) => html`<small>@${k}</small> ${mean.toFixed(3)} <small>${low.toFixed(3)} to ${high.toFixed(3)}</small> `)}</td>
    <td>${counted} of ${result.tasks * result.attempts}${left.length === 0 ? null : html`<br><small>left out: ${left.join(', ')}</small>`}${unscored === 0 ? null : html`<br><small>unscored ends, as failures: ${unscored}</small>`}${flagged === null ? null : html`<br><small>flagged: ${flagged}</small>`}</td>
    <td class="n">${short(cost.sampledTokens)}${money === null ? null : html`<br><small>${money}</small>`}</td></tr>`;
}

/** Compares the last sweep with the first. Each sweep between them was a look as well, for which its p-value is adjusted. */
function comparison(before: SweepReport, later: readonly SweepReport[]): Markup | null {
  const found = later.map((sweep) => compareSweeps(before.taskScores, sweep.taskScores));
  const after = later.at(-1);
  const compared = found.at(-1) ?? null;
  if (compared === null || after === undefined) return null;
  const { tasks: common, passRate, flipped, flippedByChance } = compared;
  const { difference, low, high, pValue } = passRate;
  const looks = found.flatMap((one) => one?.passRate.pValue ?? []);
  const adjusted = holm(looks).at(-1) ?? 1;
  const better = flipped.filter((task) => task.after > task.before).length;
  return html`<p class="key">From <code>${before.sweep}</code> to <code>${after.sweep}</code>, over ${common} common tasks: ${signed(difference)}
    (95 %: ${signed(low)} to ${signed(high)}), p ${pText(pValue)} by a permutation test${looks.length === 1 ? null : html`, ${pText(adjusted)} adjusted for the ${looks.length} sweeps that can be compared with the first (Holm)`}; ${better} tasks improved, ${flipped.length - better} worsened; ${flippedByChance.toFixed(1)} of either expected by chance.</p>`;
}

function tasks(scores: readonly TaskScore[]): Markup {
  return html`<table><thead><tr><th>task</th><th class="n">passed</th><th class="n">reward</th><th class="n">left out</th><th class="n">tokens</th><th class="n">seconds</th></tr></thead><tbody>
    ${scores
      .slice(0, maxRows)
      .map(
        ({ task, passed, counted, meanReward, leftOut, sampledTokens, seconds }) =>
          html`<tr><td><code>${task}</code></td><td class="n">${passed} of ${counted}</td><td class="n">${meanReward?.toFixed(2) ?? '–'}</td><td class="n">${leftOut}</td><td class="n">${short(sampledTokens)}</td><td class="n">${seconds.toFixed(1)}</td></tr>`,
      )}</tbody></table>${scores.length > maxRows ? html`<p class="key">… and ${scores.length - maxRows} more.</p>` : null}`;
}

const pText = (value: number): string => (value < 0.0001 ? '< 0.0001' : `= ${value.toFixed(4)}`);

const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;

/** Draws a mean with its interval on a line from 0 to 1, so that the rows of a table can be compared at a glance. */
function intervalMark({ mean, low, high }: Estimate): Markup {
  const x = xScale(intervalFrame, [0, 1]);
  return html`<svg viewBox="0 0 ${intervalFrame.width} ${intervalFrame.height}" role="img" class="interval" aria-label="${mean.toFixed(3)}, from ${low.toFixed(3)} to ${high.toFixed(3)}">
    <g class="axis"><line class="grid" x1="${px(x(0))}" x2="${px(x(1))}" y1="8" y2="8"/></g>
    <line class="whisker" x1="${px(x(low))}" x2="${px(x(high))}" y1="8" y2="8"/><circle class="point" cx="${px(x(mean))}" cy="8" r="4"/></svg>`;
}

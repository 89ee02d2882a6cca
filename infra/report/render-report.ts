import { flagsText } from '../../workflows/algorithms/flags.ts';
import { risingText } from '../../workflows/algorithms/rising-tricks.ts';
import { rewardCurve } from './charts/reward-curve.ts';
import { shareBar } from './charts/share-bar.ts';
import { stageTimings } from './charts/stage-timings.ts';
import { type StepValue, short, sparkline, stepBars } from './charts/step-bars.ts';
import { type Costs, costTable } from './cost-table.ts';
import { groupSection } from './group-section.ts';
import { html, type Markup, trustedHtml } from './markup.ts';
import type { FailureCount, ReportData } from './report-data.ts';
import { rolloutSection } from './rollout-section.ts';
import { style } from './style.ts';
import { type Summary, summarise } from './summary.ts';
import { sweepSection } from './sweep-section.ts';

/**
 * Renders a report as one self-contained page. It contains text from agents, so it has no scripts and no external resources,
 * and a content security policy that forbids both.
 */
export function renderReport(data: ReportData): string {
  const summary = summarise(data);
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>temper: ${data.run.id}</title><style>${trustedHtml(style)}</style></head>
<body><main>
${head(data, summary)}
${rewards(data)}
${sweepSection(data.sweeps, data.costs?.prices ?? null)}
${outcomes(data)}
${groupSection(data.groupFates)}
${failures(data.failures)}
${costSection(data.costs)}
${flagSection(data)}
${perStep(data)}
${timings(data)}
${data.example === null ? null : rolloutSection(data.example)}
${footer(data)}
</main></body></html>`;
  return page.text;
}

function head({ run, wallSeconds }: ReportData, summary: Summary): Markup {
  const { meanRewardFirstFifth: first, meanRewardLastFifth: last, heldOutBefore, heldOutAfter } = summary;
  return html`<header class="top"><p class="brand">temper</p>
    <h1>${headline(summary)}</h1>
    <p class="lead">Run <code>${run.id}</code>: <b>${run.agent}</b> in <b>${run.sandbox}</b> sandboxes on <code>${run.tasks}</code>,
    ${run.groupsPerStep} groups of ${run.rolloutsPerGroup} rollouts per step, staleness at most ${run.maxStaleness} ${run.maxStaleness === 1 ? 'step' : 'steps'}, seed ${run.seed}.</p>
    <dl class="tiles">
      ${tile('reward, first fifth → last', change(first, last))}
      ${heldOutBefore === null && heldOutAfter === null ? null : tile('held-out reward, before → after', change(heldOutBefore, heldOutAfter))}
      ${tile('steps', `${summary.steps} of ${run.stepsAsked}`)}
      ${summary.updates === summary.steps ? null : tile('updates', String(summary.updates))}
      ${tile('rollouts', String(summary.rollouts))}
      ${tile('tokens trained', short(summary.tokensTrained))}
      ${wallSeconds === null ? null : tile('wall time', duration(wallSeconds))}
    </dl></header>`;
}

function headline({ meanRewardFirstFifth: first, meanRewardLastFifth: last, steps }: Summary): string {
  if (first === null || last === null) return `None of ${steps} steps has a reward`;
  const verb = last - first > 0.02 ? 'rose' : last - first < -0.02 ? 'fell' : 'stayed';
  if (verb === 'stayed') return `Mean reward stayed at ${last.toFixed(2)} over ${steps} steps`;
  return `Mean reward ${verb} from ${first.toFixed(2)} to ${last.toFixed(2)} in ${steps} steps`;
}

const tile = (name: string, value: string): Markup => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

const change = (before: number | null, after: number | null): string =>
  `${before?.toFixed(2) ?? '–'} → ${after?.toFixed(2) ?? '–'}`;

function rewards({ steps, heldOut }: ReportData): Markup {
  return html`<section><h2>Reward</h2>${rewardCurve(steps, heldOut)}
    <p class="key"><i class="k-line"></i>mean over all scored rollouts of a step <i class="k-band"></i>range from its lowest to its highest group
    <i class="k-dot"></i>one group${heldOut === null ? null : html` <i class="k-diamond"></i>${heldOut.tasks} held-out tasks, before and after`}</p></section>`;
}

function outcomes({ rollouts, groups }: ReportData): Markup {
  return html`<section><h2>Outcomes and fates</h2>
    <div class="pair">${shareBar('Rollouts by outcome', rollouts)}${shareBar('Groups by fate', groups)}</div></section>`;
}

function failures(counts: readonly FailureCount[]): Markup | null {
  if (counts.length === 0) return null;
  return html`<section><h2>Failures</h2><table><thead><tr><th>type</th><th>stage</th><th class="n">rollouts</th><th>example</th></tr></thead><tbody>
    ${counts.map(
      ({ type, stage, count, example, workflowId }) =>
        html`<tr><td><code>${type}</code></td><td>${stage ?? '–'}</td><td class="n">${count}</td><td>${example}<br><small>${workflowId}</small></td></tr>`,
    )}</tbody></table></section>`;
}

/** Renders what the run cost, an outcome a line. */
function costSection(costs: Costs | null): Markup | null {
  const made = costs === null ? null : costTable(costs);
  if (made === null) return null;
  const [first = '', ...head] = made.head;
  return html`<section id="cost"><h2>Cost</h2>
    <table><thead><tr><th>${first}</th>${head.map((name) => html`<th class="n">${name}</th>`)}</tr></thead><tbody>
    ${made.rows.map(([name = '', ...cells]) => html`<tr><td>${name}</td>${cells.map((cell) => html`<td class="n">${cell}</td>`)}</tr>`)}</tbody></table>
    ${made.notes.map((note) => html`<p class="key">${note}.</p>`)}</section>`;
}

/** Renders the suspected tricks of the run's rollouts, or nothing when there are none. */
function flagSection({ flags, flagged, rising }: Pick<ReportData, 'flags' | 'flagged' | 'rising'>): Markup | null {
  const text = flagsText(flagged);
  if (text === null) return null;
  return html`<section id="flags"><h2>Flags</h2>
    <p class="key">${text}. Flags are for review: honest work may be flagged too, so they change a reward only where the run says so (onFlag). Mean rewards are as measured.</p>
    ${rising.map((one) => html`<p class="key">Warning: ${risingText(one)}.</p>`)}
    <table><thead><tr><th>trick</th><th class="n">rollouts</th><th class="n">mean reward</th><th>example with the highest reward</th></tr></thead><tbody>
    ${flags.map(
      ({ trick, count, meanReward, workflowId }) =>
        html`<tr><td><code>${trick}</code></td><td class="n">${count}</td><td class="n">${meanReward?.toFixed(2) ?? '–'}</td><td><small>${workflowId}</small></td></tr>`,
    )}</tbody></table></section>`;
}

function perStep({ steps }: ReportData): Markup | null {
  if (steps.length === 0) return null;
  const names = [...new Set(steps.flatMap(({ metrics }) => Object.keys(metrics)))].sort();
  return html`<section><h2>Step by step</h2><div class="pair">
    <figure><figcaption>Staleness of the batch, in steps</figcaption>${stepBars(
      'Staleness',
      steps.map(({ step, staleness }) => ({ step, value: staleness })),
    )}</figure>
    <figure><figcaption>Tokens trained</figcaption>${stepBars(
      'Tokens trained',
      steps.map(({ step, tokens }) => ({ step, value: tokens })),
    )}</figure></div>
    ${names.length === 0 ? null : html`<div class="metrics">${names.map((name) => metric(name, valuesOf(steps, name)))}</div>`}</section>`;
}

const valuesOf = (steps: ReportData['steps'], name: string): StepValue[] =>
  steps.flatMap(({ step, metrics }) => {
    const value = metrics[name];
    return value !== undefined && Number.isFinite(value) ? [{ step, value }] : [];
  });

function metric(name: string, values: readonly StepValue[]): Markup | null {
  const [first, last] = [values[0], values.at(-1)];
  if (first === undefined || last === undefined) return null;
  if (values.every(({ value }) => value === first.value)) return null; // A setting, or a metric without change.
  return html`<figure><figcaption><code>${name}</code> <span>${short(first.value)} → <b>${short(last.value)}</b></span></figcaption>${sparkline(name, values)}</figure>`;
}

/** Renders the stage timings. Waiting for a slot may exceed all work, so it is stated in text instead of drawn. */
function timings({ stages }: ReportData): Markup | null {
  const worked = stages.filter(({ stage }) => stage !== 'placeRollout');
  const waited = stages.find(({ stage }) => stage === 'placeRollout');
  if (worked.length === 0) return null;
  const wait =
    waited === undefined
      ? null
      : ` Before that, a rollout waits for a slot on a host: median ${short(waited.median)} s, 90th percentile ${short(waited.p90)} s.`;
  return html`<section><h2>Where a rollout's time goes</h2>${stageTimings(worked)}
    <p class="key"><i class="k-bar"></i>median <i class="k-whisker"></i>up to the 90th percentile.${wait}</p></section>`;
}

function footer({ run }: ReportData): Markup {
  return html`<footer><p>To check these numbers, use <code>temper status</code>, <code>temper show ${run.id}</code>, or the Temporal UI with the query <code>TemperRun = "${run.id}"</code>. Run key <code>${run.key}</code>.</p></footer>`;
}

function duration(seconds: number): string {
  // Rounded before it is divided: 179.7 s are no `2 min 60 s`.
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

import { html, type Markup } from '../markup.ts';
import type { StageTiming } from '../report-data.ts';
import { type Frame, linear, px, ticks } from './scale.ts';
import { short } from './step-bars.ts';

const rowHeight = 26;
const frame: Frame = { width: 920, height: 0, left: 136, right: 120, top: 8, bottom: 26 };

/** Draws the median of each stage as a bar and the 90th percentile as a whisker. The axis ignores outliers beyond those. */
export function stageTimings(stages: readonly StageTiming[]): Markup {
  const height = frame.top + stages.length * rowHeight + frame.bottom;
  const max90 = Math.max(0.01, ...stages.map(({ p90 }) => p90));
  const x = linear([0, max90], [frame.left, frame.width - frame.right]);
  const bottom = height - frame.bottom;
  return html`<svg viewBox="0 0 ${frame.width} ${height}" role="img" aria-label="Seconds per stage">
    <g class="axis">${ticks(0, max90, 6).map(
      (value) =>
        html`<line class="${value === 0 ? 'base' : 'grid'}" x1="${px(x(value))}" x2="${px(x(value))}" y1="${frame.top}" y2="${bottom}"/><text x="${px(x(value))}" y="${bottom + 17}" text-anchor="middle">${short(value)} s</text>`,
    )}</g>
    ${stages.map((timing, index) => row(timing, frame.top + index * rowHeight, x))}
  </svg>`;
}

function row({ stage, count, median, p90, max }: StageTiming, top: number, x: (value: number) => number): Markup {
  const middle = top + rowHeight / 2;
  return html`<g><title>${stage}: median ${median.toFixed(3)} s, 90th percentile ${p90.toFixed(3)} s, longest ${max.toFixed(3)} s, ${count} times</title>
    <text class="name" x="${frame.left - 10}" y="${middle + 4}" text-anchor="end">${stage}</text>
    <rect class="bar" x="${frame.left}" y="${top + 7}" width="${px(Math.max(1, x(median) - frame.left))}" height="${rowHeight - 14}" rx="1"/>
    <line class="whisker" x1="${px(x(median))}" x2="${px(x(p90))}" y1="${middle}" y2="${middle}"/>
    <line class="whisker" x1="${px(x(p90))}" x2="${px(x(p90))}" y1="${middle - 4}" y2="${middle + 4}"/>
    <text class="value" x="${px(x(p90) + 8)}" y="${middle + 4}">${short(median)} s<tspan class="quiet"> · p90 ${short(p90)} s</tspan></text>
  </g>`;
}

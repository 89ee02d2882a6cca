import type { Estimate } from '../../../workflows/contracts/sweep.ts';
import { html, type Markup } from '../markup.ts';
import { type Frame, px, xScale } from './scale.ts';

const frame: Frame = { width: 180, height: 16, left: 4, right: 4, top: 2, bottom: 2 };

/** Draws a mean with its interval on a line from 0 to 1, so that the rows of a table can be compared at a glance. */
export function intervalMark({ mean, low, high }: Estimate): Markup {
  const x = xScale(frame, [0, 1]);
  return html`<svg viewBox="0 0 ${frame.width} ${frame.height}" role="img" class="interval" aria-label="${mean.toFixed(3)}, from ${low.toFixed(3)} to ${high.toFixed(3)}">
    <g class="axis"><line class="grid" x1="${px(x(0))}" x2="${px(x(1))}" y1="8" y2="8"/></g>
    <line class="whisker" x1="${px(x(low))}" x2="${px(x(high))}" y1="8" y2="8"/><circle class="point" cx="${px(x(mean))}" cy="8" r="4"/></svg>`;
}

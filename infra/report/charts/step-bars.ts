import { html, type Markup } from '../markup.ts';
import { type Frame, px, ticks, xScale, yScale } from './scale.ts';

const frame: Frame = { width: 440, height: 150, left: 44, right: 10, top: 12, bottom: 26 };

export interface StepValue {
  readonly step: number;
  readonly value: number;
}

/** Draws one bar per step, from zero. */
export function stepBars(label: string, values: readonly StepValue[]): Markup {
  const top = Math.max(1, ...values.map(({ value }) => value));
  const marks = ticks(0, top, 3);
  const steps = values.map(({ step }) => step);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const x = xScale(frame, [first - 0.5, last + 0.5]);
  const y = yScale(frame, [0, top]);
  const width = Math.max(1, Math.min(26, (x(1) - x(0)) * 0.72));
  return html`<svg viewBox="0 0 ${frame.width} ${frame.height}" role="img" aria-label="${label} by step">
    <g class="axis">${marks.map(
      (value) =>
        html`<line class="${value === 0 ? 'base' : 'grid'}" x1="${frame.left}" x2="${frame.width - frame.right}" y1="${px(y(value))}" y2="${px(y(value))}"/><text x="${frame.left - 6}" y="${px(y(value) + 4)}" text-anchor="end">${short(value)}</text>`,
    )}${[first, last].map(
      (step) => html`<text x="${px(x(step))}" y="${frame.height - 8}" text-anchor="middle">${step}</text>`,
    )}</g>
    ${values.map(
      ({ step, value }) =>
        html`<rect class="bar" x="${px(x(step) - width / 2)}" width="${px(width)}" y="${px(y(value))}" height="${px(y(0) - y(value))}" rx="1"><title>step ${step}: ${short(value)}</title></rect>`,
    )}
  </svg>`;
}

/** Draws a metric as a line on its own scale, to show its shape. */
export function sparkline(label: string, values: readonly StepValue[]): Markup {
  const box: Frame = { width: 200, height: 44, left: 2, right: 2, top: 5, bottom: 5 };
  const numbers = values.map(({ value }) => value);
  const steps = values.map(({ step }) => step);
  const x = xScale(box, [Math.min(...steps), Math.max(...steps)]);
  const y = yScale(box, [Math.min(...numbers), Math.max(...numbers)]);
  const points = values.map(({ step, value }) => `${px(x(step))},${px(y(value))}`).join(' ');
  return html`<svg viewBox="0 0 ${box.width} ${box.height}" role="img" aria-label="${label} by step" class="spark"><polyline class="line" points="${points}"/></svg>`;
}

/** Formats a number with three significant digits. */
export function short(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

import { html, type Markup } from '../markup.ts';
import type { HeldOut, StepFacts } from '../report-data.ts';
import { type Frame, px, type Scale, ticks, xScale, yScale } from './scale.ts';

const frame: Frame = { width: 920, height: 340, left: 44, right: 76, top: 18, bottom: 40 };

interface Point {
  readonly step: StepFacts;
  readonly reward: number;
}

/** Draws the mean reward by step over the band and dots of its groups, and held-out rewards as diamonds before and after. */
export function rewardCurve(steps: readonly StepFacts[], heldOut: HeldOut | null): Markup {
  const points = steps.flatMap((step) => (step.meanReward === null ? [] : [{ step, reward: step.meanReward }]));
  const last = steps.at(-1)?.step ?? 1;
  const x = xScale(frame, [heldOut === null ? 1 : 0, heldOut === null ? last : last + 1]);
  const y = yScale(frame, [0, 1]);
  return html`<svg viewBox="0 0 ${frame.width} ${frame.height}" role="img" aria-label="Mean reward by step">
    ${axes(x, y, last)}
    ${band(points, x, y)}
    ${points.map(({ step }) => step.groups.map((group) => groupDot(step, group, x, y)))}
    <polyline class="line" points="${points.map(({ step, reward }) => `${px(x(step.step))},${px(y(reward))}`).join(' ')}"/>
    ${points.map(
      ({ step, reward }) =>
        html`<circle class="mean" cx="${px(x(step.step))}" cy="${px(y(reward))}" r="3.2"><title>step ${step.step}: mean reward ${reward.toFixed(3)}, ${step.rollouts} rollouts trained</title></circle>`,
    )}
    ${heldOutMarks(heldOut, x, y, last)}
    ${endLabel(points, x, y)}
  </svg>`;
}

function axes(x: Scale, y: Scale, last: number): Markup {
  const right = frame.width - frame.right;
  const bottom = frame.height - frame.bottom;
  return html`<g class="axis">
    ${[0, 0.25, 0.5, 0.75, 1].map(
      (value) =>
        html`<line class="${value === 0 ? 'base' : 'grid'}" x1="${frame.left}" x2="${right}" y1="${px(y(value))}" y2="${px(y(value))}"/><text x="${frame.left - 8}" y="${px(y(value) + 4)}" text-anchor="end">${value}</text>`,
    )}
    ${ticks(1, last, 10)
      .filter(Number.isInteger)
      .map((step) => html`<text x="${px(x(step))}" y="${bottom + 18}" text-anchor="middle">${step}</text>`)}
    <text x="${(frame.left + right) / 2}" y="${bottom + 35}" text-anchor="middle">step</text>
  </g>`;
}

/** Draws the band from the lowest to the highest mean of each step's groups. */
function band(points: readonly Point[], x: Scale, y: Scale): Markup | null {
  const spans = points.flatMap(({ step }) => {
    const means = step.groups.flatMap((group) => group.meanReward ?? []);
    return means.length === 0 ? [] : [{ at: x(step.step), low: y(Math.min(...means)), high: y(Math.max(...means)) }];
  });
  if (spans.length < 2) return null;
  const up = spans.map(({ at, high }) => `${px(at)},${px(high)}`);
  const down = spans.toReversed().map(({ at, low }) => `${px(at)},${px(low)}`);
  return html`<polygon class="band" points="${[...up, ...down].join(' ')}"/>`;
}

/** Draws the dot of a group. Groups with equal means are drawn side by side, so that each is visible. */
function groupDot(step: StepFacts, group: StepFacts['groups'][number], x: Scale, y: Scale): Markup | null {
  if (group.meanReward === null) return null;
  const twins = step.groups.filter((other) => other.meanReward === group.meanReward);
  const offset = (twins.indexOf(group) - (twins.length - 1) / 2) * Math.min(3, 14 / twins.length);
  return html`<circle class="group" cx="${px(x(step.step) + offset)}" cy="${px(y(group.meanReward))}" r="1.9"><title>step ${step.step}, group ${group.index}: ${group.meanReward.toFixed(2)} over ${group.rewards.length} rollouts of ${group.task} (${group.fate})</title></circle>`;
}

function heldOutMarks(heldOut: HeldOut | null, x: Scale, y: Scale, last: number): Markup | null {
  if (heldOut === null) return null;
  const mark = (value: number | null, step: number, when: string): Markup | null => {
    if (value === null) return null;
    const [cx, cy] = [x(step), y(value)];
    const corners = `${px(cx)},${px(cy - 6)} ${px(cx + 6)},${px(cy)} ${px(cx)},${px(cy + 6)} ${px(cx - 6)},${px(cy)}`;
    return html`<polygon class="heldout" points="${corners}"><title>held-out tasks ${when} training: ${value.toFixed(3)}</title></polygon>`;
  };
  return html`${mark(heldOut.before, 0, 'before')}${mark(heldOut.after, last + 1, 'after')}`;
}

function endLabel(points: readonly Point[], x: Scale, y: Scale): Markup | null {
  const end = points.at(-1);
  if (end === undefined) return null;
  const at = Math.max(x(end.step.step) + 12, frame.width - frame.right + 10);
  return html`<text class="end" x="${px(at)}" y="${px(y(end.reward) + 5)}">${end.reward.toFixed(2)}</text>`;
}

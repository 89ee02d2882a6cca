/** The size of a chart, with margins for its axes, in pixels. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export type Scale = (value: number) => number;

/** Creates a linear scale from a domain to pixels. A domain of one value maps to the middle. */
export function linear(domain: readonly [number, number], range: readonly [number, number]): Scale {
  const [from, to] = domain;
  const [start, end] = range;
  if (from === to) return () => (start + end) / 2;
  return (value) => start + ((value - from) / (to - from)) * (end - start);
}

export const xScale = (frame: Frame, domain: readonly [number, number]): Scale =>
  linear(domain, [frame.left, frame.width - frame.right]);

export const yScale = (frame: Frame, domain: readonly [number, number]): Scale =>
  linear(domain, [frame.height - frame.bottom, frame.top]);

/** Round numbers within a range, about as many as wanted. */
export function ticks(from: number, to: number, wanted: number): number[] {
  const span = Math.max(to - from, Number.EPSILON);
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** Formats pixels with one decimal, which is precise enough and keeps the file small. */
export const px = (value: number): string => value.toFixed(1).replace(/\.0$/, '');

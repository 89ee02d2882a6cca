/**
 * The width of a lane, which follows the load by additive increase and multiplicative decrease: a stage that ran out of
 * time or was slow halves it, and each other stage that succeeds widens it by its share of one.
 */
export interface LaneWidth {
  /** The largest width, which is also the first. */
  readonly most: number;
  /** The number of stages that may run at once now; at least one. */
  readonly now: number;
  /** The number of times that the width was halved. */
  readonly halved: number;
  /** Learns how a stage ended that began at `beganAtMs`. A failure that says nothing about load is not reported. */
  ended(how: 'well' | 'overloaded', beganAtMs: number): void;
}

export interface LaneWidthOptions {
  readonly most: number;
  /** The duration from which a stage counts as slow; without it, none does. */
  readonly slowMs?: number;
  readonly clock?: () => number;
}

export function createLaneWidth(options: LaneWidthOptions): LaneWidth {
  const { most, slowMs = Number.POSITIVE_INFINITY, clock = Date.now } = options;
  /** Fractional, because a success adds a part of one. */
  let width = most;
  let halved = 0;
  let halvedAtMs = Number.NEGATIVE_INFINITY;

  /** Halves the width once for all stages that ran at that moment, since they suffer from the same overload. */
  const halve = (beganAtMs: number): void => {
    if (beganAtMs < halvedAtMs || width === 1) return;
    width = Math.max(1, Math.floor(width / 2));
    halvedAtMs = clock();
    halved += 1;
  };

  return {
    most,
    get now() {
      return Math.floor(width);
    },
    get halved() {
      return halved;
    },
    ended(how, beganAtMs) {
      if (how === 'overloaded' || clock() - beganAtMs > slowMs) halve(beganAtMs);
      else width = Math.min(most, width + 1 / width);
    },
  };
}

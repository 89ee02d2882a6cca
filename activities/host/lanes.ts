import { provisionMs } from '../../workflows/contracts/stage-limits.ts';
import { createLane, type Lane } from './lane.ts';
import { createLaneWidth, type LaneWidthOptions } from './lane-width.ts';

/** The lanes of a host: each kind of heavy work has its own, so that no backlog of one starves another. */
export type Lanes = Readonly<Record<LaneName, Lane>>;
export const laneNames = ['image', 'provision', 'capture', 'release', 'evaluate'] as const;
export type LaneName = (typeof laneNames)[number];

/** Most activities of this lane wait for an image that another one fetches; the provider limits how many are fetched at once. */
const imageWidth = 64;

export interface LaneWidths {
  /** The width of the lanes whose stages are of temper's own making. */
  readonly stages: number;
  readonly evaluations: number;
}

/**
 * Creates the lanes of a host. A stage is slow when it has used up a quarter of the time after which it fails. Images and
 * tests may take any time, so their lanes are halved by time-outs alone.
 */
export function createLanes({ stages, evaluations }: LaneWidths): Lanes {
  const lane = (options: LaneWidthOptions): Lane => createLane(createLaneWidth(options));
  return {
    image: lane({ most: imageWidth }),
    provision: lane({ most: stages, slowMs: provisionMs / 4 }),
    capture: lane({ most: stages, slowMs: 30_000 }),
    release: lane({ most: stages, slowMs: 15_000 }),
    evaluate: lane({ most: evaluations }),
  };
}

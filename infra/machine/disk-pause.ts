import { kept } from './fit.ts';
import type { Level } from './level.ts';

/** The state of a disk: `low` pauses runs, `enough` resumes them, and between the two nothing changes. */
export interface DiskState {
  readonly state: 'low' | 'between' | 'enough';
  readonly freeMb: number;
  /** The free space in MB from which on runs resume. */
  readonly resumeAtMb: number;
  readonly limit: string;
}

/** Twice what a host keeps free of new rollouts, so that runs pause while those in flight can still end. */
const leastMb = 2 * kept.disk;
/** The share of a large disk: many rollouts at once fill gigabytes within a minute. */
const shareOfLarge = 0.02;
/** The largest share, for small disks. */
const mostOfTotal = 1 / 16;
const resumeFactor = 1.5;

/** Judges the free space of a disk. */
export function diskState({ free, total, limit }: Level): DiskState {
  const lowMb = Math.min(total * mostOfTotal, Math.max(leastMb, total * shareOfLarge));
  const resumeAtMb = lowMb * resumeFactor;
  if (free < lowMb) return { state: 'low', freeMb: free, resumeAtMb, limit };
  return { state: free < resumeAtMb ? 'between' : 'enough', freeMb: free, resumeAtMb, limit };
}

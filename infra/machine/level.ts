/** The resources that rollouts use up; `memory` and `disk` are counted in MB. */
export const resources = ['memory', 'processes', 'handles', 'disk'] as const;
export type Resource = (typeof resources)[number];

/** One limit of this machine, or of the container or user that temper runs in, and what is free below it. */
export interface Level {
  readonly resource: Resource;
  readonly free: number;
  readonly total: number;
  /** The source of the limit, for readers, such as `ulimit -n`. */
  readonly limit: string;
}

/** Returns the level of a resource with the least left, by what is free or by the total; undefined if none is known. */
export function scarcest(levels: readonly Level[], resource: Resource, by: 'free' | 'total'): Level | undefined {
  const known = levels.filter((level) => level.resource === resource);
  return known.reduce<Level | undefined>((least, one) => (least && least[by] <= one[by] ? least : one), undefined);
}

/** The free space in MB below which a disk counts as full: what it lacks is used in a moment. */
const fullMb = 64;

/** Whether one of the disks is full. */
export const isDiskFull = (levels: readonly Level[]): boolean =>
  levels.some(({ resource, free }) => resource === 'disk' && free < fullMb);

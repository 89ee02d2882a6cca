import { createTinkerTrainer, type TinkerOptions } from './tinker.ts';
import type { Trainer } from './trainer.ts';

export type { TinkerOptions } from './tinker.ts';

/** Every trainer that temper can drive; one sibling file each. */
export const trainers = {
  tinker: createTinkerTrainer,
} as const satisfies Record<string, (options: TinkerOptions) => Trainer>;

import type { Config } from '../config.ts';
import { configuredTarget, plainTarget, type TemporalTarget } from './connection.ts';

/** The Temporal server of a stack: the one that the environment or a profile names, else the stack's own dev server. */
export function temporalTarget(config: Config): TemporalTarget {
  return configuredTarget(config.env) ?? plainTarget(`127.0.0.1:${config.temporalPort}`);
}

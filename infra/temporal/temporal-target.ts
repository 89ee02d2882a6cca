import { configuredTarget, plainTarget, type TemporalTarget } from './connection.ts';

/** The settings of a stack that name its Temporal server. */
export interface TemporalSettings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Port of the stack's own dev server, on the loopback address. */
  readonly temporalPort: number;
}

/** The Temporal server of a stack: the one named by the environment or a profile, else the stack's own dev server. */
export function temporalTarget({ env, temporalPort }: TemporalSettings): TemporalTarget {
  return configuredTarget(env) ?? plainTarget(`127.0.0.1:${temporalPort}`);
}

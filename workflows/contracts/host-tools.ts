import { z } from 'zod';
import { text } from './input.ts';

/** The host tools that temper itself has. */
export const builtInHostTools = ['submit', 'answer', 'environment'] as const;

/** Names of host tools, which an agent calls at the gateway and not in its sandbox. */
export const hostToolNames = z
  .array(
    text('the name of a host tool').regex(/^[a-z][a-z0-9_]{0,39}$/, {
      error: 'expected up to 40 small letters, digits and underscores',
    }),
    { error: 'expected a list of the names of host tools' },
  )
  .max(30)
  .refine((names) => new Set(names).size === names.length, { error: 'expected each name once' });

/** One call of a host tool, as the gateway recorded it. */
export interface HostCall {
  readonly index: number;
  readonly tool: string;
  /** The arguments as JSON. */
  readonly arguments: string;
  /** The text that the agent got. */
  readonly result: string;
  /** The answer to the task that the tool recorded for the tests. The agent does not see it. */
  readonly answer?: string;
  /** Whether the tool failed. */
  readonly failed?: true;
  /** The number of turns before the call. */
  readonly turns: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

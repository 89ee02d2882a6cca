import { z } from 'zod';
import { text } from './input.ts';

/** The pool of the engines that the environment of the stack names. */
export const defaultPool = 'default';

/** The name of a pool of engines: `default`, or one that the operator's engines.json has. */
export const poolName = text('the name of a pool of engines, as engines.json has it').regex(
  /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,59}$/,
  { error: 'expected a name of letters, digits, ".", "_" and "-", at most 60' },
);

/** The policy of a run, and the engines that serve it. */
export const policyRef = z.strictObject({
  runKey: text('a run key').describe("The run's first execution run id."),
  pool: poolName.describe('The pool of engines that serves it.'),
});
export type PolicyRef = Readonly<z.output<typeof policyRef>>;

import { z } from 'zod';
import { list, setting } from '../setting.ts';

const expected = { error: 'expected names of variables with commas between them, none of them a setting of temper' };

/** The environment variables that say how the containers of tasks run, and what tasks may have of a host. */
export const taskVariables = {
  TEMPER_RUNTIME: setting(
    z
      .string()
      .regex(/^[\w][\w./-]{0,100}$/, { error: 'expected the name of an OCI runtime that the Docker daemon knows' })
      .default(''),
    "OCI runtime of Docker sandboxes, as the daemon's configuration names it, for example `crun`. One whose containers have a kernel of their own, such as `runsc`, is refused",
    "the daemon's own",
  ),
  TEMPER_TASK_VARIABLES: setting(
    list().refine((names) => names.every((name) => /^(?!TEMPER_)[A-Za-z_]\w*$/.test(name)), expected),
    "variables of this host's environment that tasks may have, by name; see [Harbor's fields](../guides/harbor.md#variables-of-the-host). What a sandbox is given, its code can read and print",
    'none',
  ),
};

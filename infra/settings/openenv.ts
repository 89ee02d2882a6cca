import { z } from 'zod';
import { setting, text } from '../setting.ts';

/** The environment variables for OpenEnv: what temper serves, and what its tasks may use. */
export const openEnvVariables = {
  TEMPER_ENVIRONMENTS: setting(
    text().optional(),
    'file that configures the OpenEnv environments that tasks may use',
    '`environments.json` in the home',
  ),
  TEMPER_OPENENV_TOKEN: setting(
    z
      .string()
      .regex(/^[\w.~-]{16,200}$/, { error: 'expected 16 to 200 letters, digits, "-", ".", "_" or "~"' })
      .optional(),
    'secret that clients of `temper openenv serve` need; required if it listens on any address but the loopback one',
    'none',
  ),
};

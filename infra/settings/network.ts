import { z } from 'zod';
import { networkModes } from '../../workflows/contracts/network.ts';
import { setting } from '../setting.ts';

/** The environment variables of the networks that tasks and the builds of their images get. */
export const networkVariables = {
  TEMPER_NETWORK: setting(
    z.enum(networkModes, { error: 'expected none, allowlist or public' }).default('none'),
    'network that a task, and the build of its image, may have at most: `none`, an `allowlist` of hosts, or everything `public`; a task that needs more is refused. See [network](../guides/network.md)',
  ),
  TEMPER_BUILD_NETWORK: setting(
    z
      .string()
      .regex(/^(?!host$)[a-zA-Z0-9][a-zA-Z0-9_.-]{0,60}$/, {
        error: 'expected "none" or the name of a Docker network, not "host"',
      })
      .default('none'),
    "Docker network for the commands of an image build instead of that of `TEMPER_NETWORK`, for example `bridge`; `host` is refused because builds would reach the stack's own services",
  ),
};

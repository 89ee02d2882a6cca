import { z } from 'zod';
import type { BlobRef } from './blob.ts';
import type { Flag } from './flags.ts';
import { integer, oneOf } from './input.ts';

/** The reach of a sandbox, from nothing to all public addresses; each includes those before it. */
export const networkModes = ['none', 'allowlist', 'public'] as const;
export type NetworkMode = (typeof networkModes)[number];

/** The work that may have a network of its own: the agent, the tests, and the build of their image. */
export const networkPhases = ['agent', 'tests', 'build'] as const;
export type NetworkPhase = (typeof networkPhases)[number];

/**
 * Matches a name in the DNS: two labels or more, of which the last one begins with a letter. So no text of an address
 * (`127.0.0.1`, `2130706433`, `0x7f.1`) is one, nor a name that a search domain would complete.
 */
export const hostName: RegExp =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** The ports of HTTP and HTTPS. */
export const defaultPorts: readonly number[] = [80, 443];

/** The beginning of what a network is needed for, if that is a command of the set-up, which none reaches. */
export const setUpNeeds = 'set-up, which never has a network: ';

/** The hosts that one phase of a task may reach. */
export const networkPolicy = z
  .strictObject({
    mode: oneOf(networkModes).describe('`none`, `allowlist` (the hosts below) or `public` (every public address).'),
    hosts: z
      .array(
        z
          .string()
          .toLowerCase()
          .refine((pattern) => hostName.test(pattern.replace(/^\*\./, '')), {
            error: 'expected the name of a host, such as "pypi.org" or "*.pythonhosted.org"',
          }),
      )
      .max(100)
      .refine((hosts) => hosts.join().length <= 3000, { error: 'expected at most 3000 characters in all' })
      .default([])
      .describe('Names of hosts, or `*.` and a name for all names below it. Only with `allowlist`.'),
    ports: z
      .array(integer(1, 65_535))
      .min(1)
      .max(20)
      .default([...defaultPorts])
      .describe('The ports. Default: 80 and 443.'),
    optional: z
      .exactOptional(z.literal(true))
      .describe('Set if the phase has no network, instead of being refused, where the operator allows less.'),
    neededFor: z
      .exactOptional(z.string().min(1).max(200))
      .describe(
        'The command, with its file and line, for which tests cannot do without the network that they have by default.',
      ),
  })
  .refine(({ mode, hosts }) => (mode === 'allowlist') === hosts.length > 0, {
    path: ['hosts'],
    error: 'expected hosts with the mode "allowlist", and none with another',
  });
export type NetworkPolicy = Readonly<z.output<typeof networkPolicy>>;

/** The use that an agent or its tests made of their network. */
export interface NetworkUse {
  readonly requests: number;
  /** Requests that the policy, the limits or the proxy's rules refused, and those to hosts that do not answer. */
  readonly refused: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Hosts where the task's solution may be, from which the agent loaded something. Omitted when there are none. */
  readonly flags?: readonly Flag[];
  /** The same by host, port and decision, as JSON. */
  readonly log: BlobRef;
}

/** Whether a mode asks for more than another one gives. */
export const exceeds = (asked: NetworkMode, cap: NetworkMode): boolean =>
  networkModes.indexOf(asked) > networkModes.indexOf(cap);

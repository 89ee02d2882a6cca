import { randomUUID } from 'node:crypto';
import { exceeds, type NetworkMode } from '../../workflows/contracts/network.ts';
import { networkVariables } from '../agents/network-variables.ts';
import { egressDirectory, egressVariable } from '../agents/relay/protocol.ts';
import { servingEgress } from '../agents/relay.ts';
import type { Network } from '../egress/network.ts';
import type { EgressPlaces } from '../egress/places.ts';
import { createEgressProxy } from '../egress/proxy.ts';
import { listenForSession } from '../gateway/session-socket.ts';
import type { OpenBuildProxy } from '../sandbox/docker/images/build-network.ts';
import type { SandboxMount } from '../sandbox/mount.ts';

export interface BuildProxyOptions {
  /** The network that builds may have at most. */
  readonly cap: NetworkMode;
  readonly outside: Network;
  readonly places: EgressPlaces;
  /** Prepares temper's own programs, of which the relay is one. */
  runtime(): Promise<SandboxMount>;
}

/** Creates what opens the proxies of image builds. Each build has the limits of one sandbox. */
export const createBuildProxies =
  ({ cap, outside, places, runtime }: BuildProxyOptions): OpenBuildProxy =>
  async (policy) => {
    if (policy.mode === 'none' || exceeds(policy.mode, cap)) return null;
    const place = `build-${randomUUID()}`;
    const proxy = createEgressProxy({ policy, phase: 'build', network: outside });
    const directory = await places.make(place);
    const socket = await listenForSession({
      path: places.socketOf(place),
      onConnection: proxy.serve,
      onError: () => undefined,
    });
    const { [egressVariable]: address = '', ...args } = networkVariables;
    return {
      mounts: [await runtime(), { source: directory, target: egressDirectory, readOnly: true }],
      env: { [egressVariable]: address },
      serve: servingEgress,
      args,
      refused: () =>
        proxy
          .rows()
          .filter(({ decision }) => decision !== 'allowed')
          .map(({ host, port, decision }) => `${host}:${port} ${decision}`),
      async close() {
        socket.close();
        proxy.close();
        await places.remove(place);
      },
    };
  };

import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { createGatewayControl, type GatewayControlClient } from './client.ts';
import type { GatewayControl } from './control.ts';
import { type GatewaySockets, socketOf } from './sockets.ts';

/**
 * The other gateway processes on the same sessions. Throws GatewayUnavailable when the holder is unknown or is this process:
 * the session is then moving from one process to another.
 */
export interface Peers {
  controlOf(holder: string | null): GatewayControl;
  agentSocketOf(holder: string | null): string;
  close(): Promise<void>;
}

export function createPeers(name: string, sockets: GatewaySockets): Peers {
  const clients = new Map<string, GatewayControlClient>();
  const other = (holder: string | null): string => {
    if (holder !== null && holder !== name) return holder;
    throw new TemperFailure('GatewayUnavailable', 'the session is moving from one gateway to another; retry');
  };
  return {
    controlOf(holder) {
      const peer = other(holder);
      const known = clients.get(peer) ?? createGatewayControl([socketOf(sockets.control, peer)]);
      clients.set(peer, known);
      return known;
    },
    agentSocketOf: (holder) => socketOf(sockets.agents, other(holder)),
    async close() {
      await Promise.all([...clients.values()].map((client) => client.end()));
    },
  };
}

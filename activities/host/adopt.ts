import type { GatewayControl } from '../../infra/gateway/control.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { agentSandboxName, sessionId } from '../../workflows/contracts/ids.ts';
import { atBoundary } from '../boundary.ts';
import type { AdoptionActivities } from '../interfaces/host.ts';
import type { Host } from './host.ts';

/**
 * Creates the adoption of sandboxes from lost hosts. The sandbox takes a slot even if none is free: it runs, and its agent waits
 * for the answer to a model call.
 */
export function createAdoption(
  host: Pick<Host, 'name' | 'fence' | 'providers' | 'slots'>,
  gateway: Pick<GatewayControl, 'adopt'>,
): AdoptionActivities {
  return {
    adoptSandbox: ({ epoch, kind, from, usesModel, needsSandbox }) =>
      atBoundary(async (signal) => {
        const token = host.fence();
        if (token === null) throw new TemperFailure('HostFenced', `host ${host.name} has not claimed its name yet`);
        const name = agentSandboxName(epoch);
        const sandbox = needsSandbox ? await host.providers.all.get(kind)?.attach(name) : undefined;
        if (needsSandbox && sandbox === undefined) return { refused: `sandbox ${name} is gone` };
        if (usesModel && !(await gateway.adopt({ session: sessionId(epoch), from }, signal))) {
          return { refused: `host ${host.name} finds no journal that host ${from} has left` };
        }
        if (sandbox !== undefined) {
          const { expiresAtMs, sweep = false, share } = sandbox.labels;
          host.slots.take(epoch, { expiresAtMs, sweep, share });
        }
        return { host: host.name, token };
      }),
  };
}

import { Context, log } from '@temporalio/activity';
import type { GatewayControl } from '../../infra/gateway/control.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { agentSandboxName, sessionId } from '../../workflows/contracts/ids.ts';
import { atBoundary } from '../boundary.ts';
import type { AdoptionActivities } from '../interfaces/host.ts';
import { type Host, takeSlot } from './host.ts';

/** Exceeds the attempts of one adoption. */
const mostAttempts = 1_000_000;

/**
 * Creates the adoption of sandboxes from lost hosts. The sandbox takes a slot even if none is free: it runs, and its agent waits
 * for the answer to a model call. One whose journal is lost is removed.
 */
export function createAdoption(
  host: Pick<Host, 'name' | 'fence' | 'providers' | 'slots'>,
  gateway: Pick<GatewayControl, 'adopt'>,
): AdoptionActivities {
  return {
    adoptSandbox: ({ epoch, kind, from, adoption, usesModel, needsSandbox }) =>
      atBoundary(async (signal) => {
        const token = host.fence();
        if (token === null) throw new TemperFailure('HostFenced', `host ${host.name} has not claimed its name yet`);
        const name = agentSandboxName(epoch);
        const provider = host.providers.all.get(kind);
        const sandbox = needsSandbox ? await provider?.attach(name) : undefined;
        if (needsSandbox && sandbox === undefined) return { refused: `sandbox ${name} is gone` };
        // The lost host may run on for a moment without knowing that it is lost.
        await sandbox?.hold?.(orderOf(adoption, Context.current().info.attempt), signal);
        if (usesModel && !(await gateway.adopt({ session: sessionId(epoch), from }, signal))) {
          // The rollout begins again, and this agent's calls would never be answered.
          await provider?.remove(name).catch((error: unknown) => {
            log.warn('could not remove a sandbox that is not adopted; the reaper does it', { sandbox: name, error });
          });
          return { refused: `host ${host.name} finds no journal that host ${from} has left` };
        }
        if (sandbox !== undefined) takeSlot(host, epoch, sandbox);
        return { host: host.name, token };
      }),
  };
}

/** Returns the place of an attempt to adopt in the order of all adoptions of one sandbox. */
const orderOf = (adoption: number, attempt: number): number => adoption * mostAttempts + attempt;

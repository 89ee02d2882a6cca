import type { Client } from '@temporalio/client';
import { tellHostLost } from '../../../infra/temporal/tell-host-lost.ts';
import { until } from '../until.ts';
import type { Script } from './script.ts';

/** A rollout's part of a script that loses its host twice: its sandbox is adopted, and then it is not. */
export function createTwiceLostHost() {
  let [agents, adoptions] = [0, 0];
  const script = {
    kind: 'e2b',
    agent: async () => {
      agents += 1;
      if (agents < 3) await new Promise<never>(() => {});
    },
    adopt: () => {
      adoptions += 1;
      return adoptions === 1 ? { host: 'scripted', token: 'scripted/2' } : { refused: 'its journal is gone' };
    },
  } satisfies Partial<Script>;
  return {
    script,
    agents: () => agents,
    /** Declares the host lost while the first agent works, and again while the second does. */
    async lose(client: Client): Promise<void> {
      for (const at of [1, 2]) {
        await until(() => agents === at);
        // The list of workflows follows a moment later.
        await until(async () => (await tellHostLost(client, 'scripted', at)) > 0);
      }
    },
  };
}

import { type Client, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { hostLostSignal } from '../../workflows/contracts/messages.ts';
import { forRolloutsOf } from './rollouts-of-host.ts';

/**
 * Tells the rollouts of a host that this generation of it was declared lost, so that they begin again elsewhere, and returns
 * their number. Those that a later generation has placed stay there. All are tried before it throws the failure of one. To tell a
 * rollout twice does no harm.
 */
export async function tellHostLost(
  client: Pick<Client, 'workflow'>,
  host: string,
  generation: number,
): Promise<number> {
  const told = await forRolloutsOf(client, host, (rollout) => tell(rollout, host, generation));
  return told.filter((open) => open).length;
}

/** Returns whether the rollout was still open. One that has ended meanwhile has no need to know. */
async function tell(rollout: WorkflowHandle, host: string, generation: number): Promise<boolean> {
  try {
    await rollout.signal(hostLostSignal, host, generation);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

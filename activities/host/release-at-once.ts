import { Context } from '@temporalio/activity';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import type { RolloutEpoch } from '../../workflows/contracts/ids.ts';
import { isRemote } from '../../workflows/contracts/sandbox-kinds.ts';
import type { AgentEnd, AwaitAgent } from '../interfaces/host.ts';
import type { Host } from './host.ts';
import type { Lane } from './lane.ts';
import { releaseAgentSandbox } from './sandbox.ts';

/** An agent's end whose diff is captured. */
type Captured = AgentEnd & Pick<Required<AgentEnd>, 'diff'>;

/**
 * Releases the sandbox in the activity that has captured its diff, which saves an activity, if the lane of releases has a place
 * at once. The result is kept on this host first, because nothing else has it once the sandbox is gone. If the release fails,
 * the stage has an activity of its own.
 */
export async function releaseAtOnce(
  host: Host,
  lane: Lane,
  { epoch, end }: { readonly epoch: RolloutEpoch; readonly end: Captured },
): Promise<AgentEnd> {
  if (!lane.tryEnter()) return end;
  const beganAtMs = performance.now();
  try {
    await host.results.keep(epoch, end);
    await lane.run(
      () => releaseAgentSandbox(host, epoch),
      () => false,
    );
    return { ...end, releaseSeconds: (performance.now() - beganAtMs) / 1000 };
  } catch (error) {
    Context.current().log.warn('the sandbox is released in an activity of its own', { error: errorMessage(error) });
    return end;
  } finally {
    lane.leave();
  }
}

/**
 * Whether the activity that waits for the agent may release its sandbox. It must not release a remote one, which another host may
 * adopt, with what is in it, until the rollout has the result.
 */
export const mayRelease = ({ releases, kind }: Pick<AwaitAgent, 'releases' | 'kind'>): boolean =>
  releases && !isRemote(kind);

/**
 * Returns the result that an earlier attempt of the activity has kept before it released the sandbox, or else that of `work`.
 * Two attempts may overlap for a moment, so the sandbox may also vanish during the work.
 */
export async function unlessKept(
  host: Pick<Host, 'results'>,
  epoch: RolloutEpoch,
  work: () => Promise<AgentEnd>,
): Promise<AgentEnd> {
  const kept = await host.results.find(epoch);
  if (kept !== null) return kept;
  try {
    const end = await work();
    return end.diff === undefined ? ((await host.results.find(epoch)) ?? end) : end;
  } catch (error) {
    const other = await host.results.find(epoch);
    if (other !== null) return other;
    throw error;
  }
}

import { CancellationScope, isCancellation, log, patched } from '@temporalio/workflow';
import { agentOn, cancelOn, capturingOn, onHost } from '../activities.ts';
import type { BlobRef } from '../contracts/blob.ts';
import type { Diff } from '../contracts/diff.ts';
import { captureSnapshot } from './capture-snapshot.ts';
import type { EpochContext, Prepared, Produced } from './epoch-context.ts';
import type { EpochHost } from './epoch-host.ts';

/** The work of an agent that has ended, before its trace is sealed. */
export type Worked = Omit<Produced, 'trace' | 'limitsCreations'>;

/** Lets an agent work in its sandbox until its end, and captures what its tests will get. */
export async function workOnce(context: EpochContext, host: EpochHost, sandboxed: Prepared): Promise<Worked> {
  const { epoch, resolved } = context;
  const { kind, baseCommit } = sandboxed;
  const { captured, answer, ...end } = await runAgent(context, host, sandboxed);
  const capture = () =>
    capturingOn(host.name).captureDiff({ epoch, kind, task: resolved.task, baseCommit, ...adoption(host) });
  const diff = captured ?? (await host.stage('captureDiff', capture));
  const snapshot = await captureSnapshot(context, host, sandboxed);
  return { end, diff, ...snapshot, ...(answer !== undefined && { answer }) };
}

const adoption = ({ adoptedAs }: EpochHost) => (adoptedAs === undefined ? {} : { adoptedAs });

/**
 * Starts the agent, waits for its end, and captures the diff if the host is not busy with others: three stages, but one
 * activity.
 */
async function runAgent(
  { input, resolved, limits, epoch, progress, fewActivities }: EpochContext,
  host: EpochHost,
  { kind, contextLength, diskBeforeMb, baseCommit }: Prepared,
): Promise<Produced['end'] & { readonly captured?: Diff | undefined; readonly answer?: BlobRef }> {
  const { agent, agentOptions, maxTurns } = input;
  const { task, hostTools } = resolved;
  const options = { ...(agentOptions && { agentOptions }), ...(hostTools && { hostTools }) };
  const start = { task, maxTurns, contextLength, ...options };
  if (!fewActivities)
    await host.stage('startAgent', () => onHost(host.name).startAgent({ epoch, agent, kind, ...start }));
  const timeoutMs = limits.agentMs;
  const beganAtMs = Date.now();
  const { startSeconds, captureSeconds, diff, ...end } = await host
    .stage('awaitAgent', () =>
      agentOn(host.name, timeoutMs).awaitAgent({
        epoch,
        agent,
        kind,
        timeoutMs,
        diskBeforeMb,
        ...(fewActivities && { start, baseCommit }),
        ...(host.adoptedAs !== undefined && { adoptedAs: host.adoptedAs, beganAtMs }),
      }),
    )
    .catch((error) => {
      if (isCancellation(error) && patched('deliver-cancel')) deliverCancel(host.name);
      throw error;
    });
  if (startSeconds !== undefined) progress.split('awaitAgent', 'startAgent', startSeconds);
  if (captureSeconds !== undefined) progress.split('awaitAgent', 'captureDiff', captureSeconds);
  return { ...end, captured: diff };
}

/** Makes the host learn of a cancel before the next heartbeat. Nothing waits for it, because clean-up ends the agent, too. */
function deliverCancel(host: string): void {
  CancellationScope.nonCancellable(() => cancelOn(host).deliverCancel()).catch((error) =>
    log.warn('the agent is ended by clean-up', { error: String(error) }),
  );
}

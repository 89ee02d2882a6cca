import { CancellationScope, isCancellation, log } from '@temporalio/workflow';
import type { AgentEnd, AwaitAgent } from '../../activities/interfaces/host.ts';
import { agentOn, cancelOn, capturingOn } from '../activities.ts';
import type { Diff } from '../contracts/diff.ts';
import { captureSnapshot, needsSnapshot } from './capture-snapshot.ts';
import type { AgentsEnd, EpochContext, Prepared, Produced } from './epoch-context.ts';
import type { EpochHost } from './epoch-host.ts';
import { waitingWithin } from './time-limits.ts';

/** The work of an agent that has ended, before its trace is sealed. */
export interface Worked extends Omit<Produced, 'trace' | 'limitsCreations'> {
  /** Whether the activity that waited for the agent has also released its sandbox. */
  readonly released: boolean;
}

/** The sandbox of an agent, and the time for which the agents of earlier steps have waited for an engine. */
type PreparedWork = Prepared & Pick<AwaitAgent, 'waitedBeforeMs'>;

/** Lets an agent work in its sandbox until its end, and captures what its tests will get. */
export async function workOnce(context: EpochContext, host: EpochHost, sandboxed: PreparedWork): Promise<Worked> {
  const { epoch, resolved } = context;
  const { kind, baseCommit } = sandboxed;
  const { captured, released, answer, ...end } = await runAgent(context, host, sandboxed);
  const capture = () =>
    capturingOn(host.name).captureDiff({ epoch, kind, task: resolved.task, baseCommit, ...adoption(host) });
  const diff = captured ?? (await host.stage('captureDiff', capture));
  const snapshot = await captureSnapshot(context, host, sandboxed);
  return { end, diff, released, ...snapshot, ...(answer !== undefined && { answer }) };
}

const adoption = ({ adoptedAs }: EpochHost) => (adoptedAs === undefined ? {} : { adoptedAs });

interface Ended extends Pick<AgentEnd, 'answer'>, AgentsEnd {
  readonly captured: Diff | undefined;
  readonly released: boolean;
}

/**
 * Starts the agent and waits for its end. If the host is not busy with others, it captures the diff and releases the sandbox:
 * four stages, but one activity.
 */
async function runAgent(
  { input, resolved, limits, epoch, progress }: EpochContext,
  host: EpochHost,
  { kind, contextLength, diskBeforeMb, baseCommit, carriesChanges, waitingMs: left, waitedBeforeMs = 0 }: PreparedWork,
): Promise<Ended> {
  const { agent, agentOptions, maxTurns } = input;
  const { task, hostTools } = resolved;
  const options = { ...(agentOptions && { agentOptions }), ...(hostTools && { hostTools }) };
  const start = { task, maxTurns, contextLength, ...options };
  const releases = task.step === undefined && task.gradedIn !== 'same' && !needsSnapshot(task, carriesChanges);
  const { agentMs: timeoutMs } = limits;
  const waitingMs = waitingWithin(limits, left, waitedBeforeMs);
  const { startSeconds, captureSeconds, releaseSeconds, diff, ...end } = await host
    .stage('awaitAgent', () =>
      agentOn(host.name, timeoutMs + waitingMs).awaitAgent({
        epoch,
        agent,
        kind,
        timeoutMs,
        waitingMs,
        ...(waitedBeforeMs > 0 && { waitedBeforeMs }),
        diskBeforeMb,
        start,
        baseCommit,
        releases,
        ...adoption(host),
      }),
    )
    .catch((error) => {
      if (isCancellation(error)) deliverCancel(host.name);
      throw error;
    });
  progress.split('awaitAgent', 'startAgent', startSeconds);
  if (captureSeconds !== undefined) progress.split('awaitAgent', 'captureDiff', captureSeconds);
  if (releaseSeconds !== undefined) progress.split('awaitAgent', 'releaseSandbox', releaseSeconds);
  const ended = left === undefined ? end : { ...end, waitingMs };
  return { ...ended, captured: diff, released: releaseSeconds !== undefined };
}

/** Makes the host learn of a cancel before the next heartbeat. Nothing waits for it, because clean-up ends the agent, too. */
function deliverCancel(host: string): void {
  CancellationScope.nonCancellable(() => cancelOn(host).deliverCancel()).catch((error) =>
    log.warn('the agent is ended by clean-up', { error: String(error) }),
  );
}

import { Context } from '@temporalio/activity';
import { captureDiff } from '../../infra/grading/capture/capture-diff.ts';
import { isRecord } from '../../infra/is-record.ts';
import type { Sandbox } from '../../infra/sandbox/sandbox.ts';
import { NotYetRead } from '../../infra/sandbox/what-agent-left.ts';
import type { Store } from '../../infra/store/store.ts';
import { withTimeLimit } from '../../infra/time-limit.ts';
import type { Diff } from '../../workflows/contracts/diff.ts';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { AgentEnd, CaptureDiff } from '../interfaces/host.ts';
import { attachAgentSandbox, type Host } from './host.ts';
import type { Lane } from './lane.ts';

/** The details of the heartbeats of a capture that has failed, by which the next activity attempt knows. */
const failed = { failed: true } as const;

interface CaptureTry {
  readonly report: (details: unknown) => void;
  readonly signal: AbortSignal;
}

/** Captures the diff of an agent that has ended, as a stage with an activity of its own. */
export async function capture(host: Host, input: CaptureDiff, { report, signal }: CaptureTry): Promise<Diff> {
  const { task, baseCommit } = input;
  const { heartbeatDetails } = Context.current().info;
  const failedBefore = isRecord(heartbeatDetails) && heartbeatDetails.failed === true;
  try {
    const sandbox = await attachAgentSandbox(host, input);
    return await captureDiff(sandbox, host.store, { workdir: task.workdir, baseCommit, failedBefore }, signal);
  } catch (error) {
    if (error instanceof NotYetRead) report(failed);
    throw error;
  }
}

/** The limit of a capture at once. What takes longer is captured in an activity of its own, which has time for it. */
const atOnceMs = 20_000;
const late = new TemperFailure('SandboxUnavailable', `the diff was not captured within ${atOnceMs / 1000} s`);

interface CaptureAtOnce {
  readonly sandbox: Sandbox;
  readonly store: Store;
  readonly workdir: string;
  readonly baseCommit: string;
}

/**
 * Captures the diff in the activity that has waited for the agent's end, which saves an activity. It does so only if the lane
 * has a place at once. Returns null if it has none or if the capture fails: the stage has an activity of its own then.
 */
export async function captureAtOnce(
  lane: Lane,
  { sandbox, store, ...options }: CaptureAtOnce,
  signal: AbortSignal,
): Promise<Pick<Required<AgentEnd>, 'diff' | 'captureSeconds'> | null> {
  if (!lane.tryEnter()) return null;
  const beganAtMs = performance.now();
  try {
    const take = (ending: AbortSignal) => captureDiff(sandbox, store, { ...options, failedBefore: false }, ending);
    const diff = await lane.run(
      () => withTimeLimit({ limitMs: atOnceMs, late }, take, signal),
      (error) => error === late,
    );
    return { diff, captureSeconds: (performance.now() - beganAtMs) / 1000 };
  } catch (error) {
    signal.throwIfAborted();
    Context.current().log.warn('the diff is captured in an activity of its own', { error: errorMessage(error) });
    return null;
  } finally {
    lane.leave();
  }
}

import { Context } from '@temporalio/activity';
import { joinAtBoundary } from '../boundary.ts';
import { sendHeartbeatsNow } from '../heartbeats.ts';
import type { AgentEnd, AwaitAgent, HostActivities } from '../interfaces/host.ts';
import { awaitAgent } from './await-agent.ts';
import { capture, captureAtOnce } from './capture.ts';
import { captureSnapshot } from './capture-snapshot.ts';
import { attachAgentSandbox, type Host } from './host.ts';
import type { Lanes } from './lanes.ts';
import { mayRelease, releaseAtOnce, unlessKept } from './release-at-once.ts';
import { startAgent, startThenWait } from './start-agent.ts';

/** The lanes of the stages that may share the activity that waits for the agent. Without them, each has an activity of its own. */
export type SharedLanes = Pick<Lanes, 'capture' | 'release'>;

/** Creates the activities around an agent. */
export function createAgentActivities(
  host: Host,
  lanes?: SharedLanes,
): Pick<HostActivities, 'awaitAgent' | 'deliverCancel' | 'captureDiff' | 'captureSnapshot'> {
  return {
    awaitAgent: (input) => unlessKept(host, input.epoch, () => startAndAwait(host, input, lanes)),
    deliverCancel: async () => sendHeartbeatsNow(Context.current().info.workflowExecution?.runId ?? ''),
    captureDiff: (input) => joinAtBoundary((signal, report) => capture(host, input, { report, signal })),
    captureSnapshot: (input) => joinAtBoundary((signal) => captureSnapshot(host, input, signal)),
  };
}

/**
 * Starts the agent and waits for its end. Then it captures the diff and releases the sandbox, each if the lane of the stage has a
 * place right then.
 */
function startAndAwait(host: Host, input: AwaitAgent, lanes: SharedLanes | undefined): Promise<AgentEnd> {
  const { start, baseCommit, epoch } = input;
  return startThenWait(
    async (signal) => {
      const started = await startAgent(host, { ...input, ...start }, signal);
      return { ...started, startedAtMs: started.started === 'started' ? performance.now() : null };
    },
    async ({ started, startSeconds }, signal) => {
      const sandbox = started?.sandbox ?? (await attachAgentSandbox(host, input));
      const sawStart = started?.started !== 'already-started';
      const running = { sandbox, startedAtMs: started?.startedAtMs ?? null, sawStart };
      const end = { ...(await awaitAgent(host, input, running, signal)), startSeconds };
      if (lanes === undefined) return end;
      const options = { sandbox, store: host.store, workdir: start.task.workdir, baseCommit };
      const captured = await captureAtOnce(lanes.capture, options, signal);
      if (captured === null) return end;
      const whole = { ...end, ...captured };
      return mayRelease(input) ? releaseAtOnce(host, lanes.release, { epoch, end: whole }) : whole;
    },
  );
}

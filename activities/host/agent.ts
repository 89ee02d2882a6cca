import { Context } from '@temporalio/activity';
import { flagSolutionHosts } from '../../infra/egress/solution-hosts.ts';
import type { Held } from '../../infra/gateway/channel/hold.ts';
import { createChannels, type Egress } from '../../infra/gateway/channel/index.ts';
import { referenceAnswer } from '../../infra/grading/answer.ts';
import { blamingBrokenPrograms } from '../../infra/sandbox/broken-programs.ts';
import { wasEndedInside } from '../../infra/sandbox/failure.ts';
import { readLog, withoutSecret } from '../../infra/sandbox/process-log.ts';
import type { ProcessStatus, Sandbox, StartResult } from '../../infra/sandbox/sandbox.ts';
import { firstOfEach } from '../../workflows/algorithms/flags.ts';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import type { NetworkUse } from '../../workflows/contracts/network.ts';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { atBoundary, cancelRequested, joinAtBoundary } from '../boundary.ts';
import { sendHeartbeatsNow } from '../heartbeats.ts';
import type { AgentEnd, AwaitAgent, HostActivities } from '../interfaces/host.ts';
import { capture, captureAtOnce } from './capture.ts';
import { captureSnapshot } from './capture-snapshot.ts';
import { collect } from './collect.ts';
import { agentKeyOf, attachAgentSandbox, type Host } from './host.ts';
import type { Lanes } from './lanes.ts';
import { hasNetwork, type OpenEgress, openEgress } from './network.ts';
import { mayRelease, releaseAtOnce, unlessKept } from './release-at-once.ts';
import { startAgent, startThenWait } from './start-agent.ts';

/** The lanes of the stages that may share the activity that waits for the agent. Without them, each has an activity of its own. */
export type SharedLanes = Pick<Lanes, 'capture' | 'release'>;

/** Creates the activities around an agent. */
export function createAgentActivities(
  host: Host,
  lanes?: SharedLanes,
): Pick<HostActivities, 'startAgent' | 'awaitAgent' | 'deliverCancel' | 'captureDiff' | 'captureSnapshot'> {
  return {
    startAgent: (input) =>
      atBoundary(async (signal) => {
        const { started } = await startAgent(host, input, signal);
        return { started };
      }),
    awaitAgent: (input) => {
      const { start } = input;
      if (start === undefined) return awaitStarted(host, input);
      return unlessKept(host, input.epoch, () => startAndAwait(host, { ...input, start }, lanes));
    },
    deliverCancel: async () => sendHeartbeatsNow(Context.current().info.workflowExecution?.runId ?? ''),
    captureDiff: (input) => joinAtBoundary((signal, report) => capture(host, input, { report, signal })),
    captureSnapshot: (input) => joinAtBoundary((signal) => captureSnapshot(host, input, signal)),
  };
}

/** Waits for an agent that an activity of its own has started, as in rollouts of 0.4.0. Its time counts from when the stage was scheduled. */
function awaitStarted(host: Host, input: AwaitAgent): Promise<AgentEnd> {
  const startedAtMs = Context.current().info.scheduledTimestampMs;
  return atBoundary(async (signal) => {
    const sandbox = await attachAgentSandbox(host, input);
    return awaitAgent(host, input, { sandbox, startedAtMs, sawStart: true }, signal);
  });
}

type StartAndAwait = AwaitAgent & Pick<Required<AwaitAgent>, 'start'>;

/**
 * Starts the agent and waits for its end. Then it captures the diff and releases the sandbox, each if the lane of the stage has a
 * place right then.
 */
function startAndAwait(host: Host, input: StartAndAwait, lanes: SharedLanes | undefined): Promise<AgentEnd> {
  const { start, baseCommit, epoch } = input;
  return startThenWait(
    async (signal) => {
      const started = await startAgent(host, { ...input, ...start }, signal);
      return { started, startedAtMs: startedAtMs(input, started.started) };
    },
    async ({ started, startedAtMs, startSeconds }, signal) => {
      const sandbox = started?.sandbox ?? (await attachAgentSandbox(host, input));
      const running = { sandbox, startedAtMs, sawStart: started?.started !== 'already-started' };
      const end = { ...(await awaitAgent(host, input, running, signal)), startSeconds };
      if (lanes === undefined || baseCommit === undefined) return end;
      const options = { sandbox, store: host.store, workdir: start.task.workdir, baseCommit };
      const captured = await captureAtOnce(lanes.capture, options, signal);
      if (captured === null) return end;
      const whole = { ...end, ...captured };
      return mayRelease(input) ? releaseAtOnce(host, lanes.release, { epoch, end: whole }) : whole;
    },
  );
}

/** Returns the time at which the agent's time limit began, which an adoption does not move. */
function startedAtMs({ beganAtMs }: AwaitAgent, started: StartResult): number {
  if (beganAtMs === undefined || started === 'started') return Date.now();
  // Both times are the server's, whose clock may differ from that of this host.
  return Date.now() - Math.max(0, Context.current().info.scheduledTimestampMs - beganAtMs);
}

/**
 * Watches the agent until it ends or its time is over. An activity attempt after a worker's death continues with what is left
 * of the time. Only a real cancel ends the agent; a shutdown leaves it alone.
 */
async function awaitAgent(
  host: Host,
  input: AwaitAgent,
  running: RunningAgent,
  signal: AbortSignal,
): Promise<AgentEnd> {
  try {
    return await blamingBrokenPrograms(running.sandbox, () => watchAgent(host, input, running, signal));
  } catch (error) {
    if (wasEndedInside(error)) return endedItself(host);
    throw error;
  }
}

interface RunningAgent {
  readonly sandbox: Sandbox;
  readonly startedAtMs: number;
  /** Whether it is known that the agent began. */
  readonly sawStart: boolean;
}

async function watchAgent(
  host: Host,
  input: AwaitAgent,
  { sandbox, startedAtMs, sawStart }: RunningAgent,
  signal: AbortSignal,
): Promise<AgentEnd> {
  const deadline = startedAtMs + input.timeoutMs;
  const agentKey = agentKeyOf(input.start?.task.step);
  // If this host is declared lost meanwhile, another one may adopt the agent, which this one must not touch any more.
  const token = host.fence();
  let status: ProcessStatus;
  const egress = await openAgentEgress(host, input, sandbox);
  const channel = holdChannel(host, input, { sandbox, token, egress });
  try {
    const { diskBeforeMb } = input;
    status = await sandbox.wait(agentKey, { timeoutMs: Math.max(0, deadline - Date.now()), diskBeforeMb }, signal);
    signal.throwIfAborted();
  } catch (error) {
    if (cancelRequested(signal) && host.acts(token)) await endAgent(sandbox, agentKey, 'running');
    throw error;
  } finally {
    channel.close();
    egress?.close();
  }
  if (status.state === 'unknown' || status.state === 'absent') {
    // The records are out of reach of every agent but one that is root.
    if (sawStart && input.start?.task.user === 'root') return endedItself(host);
    const evidence = status.state === 'unknown' ? status.evidence : 'it was never started';
    throw new TemperFailure('AgentStateUnknown', `whether the agent ran in ${sandbox.name} is unknown: ${evidence}`);
  }
  await host.mayAct(token, signal);
  // Tests may need what an agent that ended by itself has left. One that ran out of time is ended with all it started.
  if (status.state === 'running') await endAgent(sandbox, agentKey, 'running');
  const uncollected = await collectAfter(host, input, sandbox, signal);
  if (!(await keepsProcesses(host, input, status))) await endAgent(sandbox, agentKey, 'exited');
  const log = await host.store.put(await whatWasSaid(host, input, sandbox, uncollected), 'text/plain');
  const answer = await answerOfSolution(host, input);
  const network = egress === undefined ? {} : { network: await useOf(host, egress, input.start?.task) };
  const more = { ...(answer !== null && { answer }), ...network };
  if (status.state === 'running') return { stop: 'deadline', exitCode: null, log, ...more };
  return { stop: stopOf(host, input.agent, status), exitCode: status.exitCode, log, ...more };
}

/** Returns the answer of the reference solution, for an agent that applies it, which calls no tools. */
async function answerOfSolution(host: Host, { agent, start }: AwaitAgent): Promise<BlobRef | null> {
  if (start?.task.hostTools?.includes('answer') !== true || !host.agent(agent).needsSolution) return null;
  const answer = referenceAnswer(await host.tasks.open(start.task));
  return answer === null ? null : host.store.put(answer, 'text/plain');
}

/** Runs what a task collects from its agent's sandbox. Returns a line for each command that failed. */
async function collectAfter(
  host: Host,
  { start, kind }: AwaitAgent,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (start === undefined) return [];
  const { task } = start;
  const files = await host.tasks.open(task);
  if (files.collect.length === 0) return [];
  try {
    const path = host.pathOf(kind);
    return await blamingBrokenPrograms(sandbox, () => collect(sandbox, { task, files, path }, signal));
  } catch (error) {
    // The agent has left a sandbox in which nothing runs, which its diff will show.
    if (wasEndedInside(error)) return [error.message];
    throw error;
  }
}

/** Returns the agent's log, with further lines at its end. */
async function whatWasSaid(host: Host, { epoch, start }: AwaitAgent, sandbox: Sandbox, lines: readonly string[]) {
  const log = await readLog(sandbox, agentKeyOf(start?.task.step));
  const more = Buffer.from(lines.map((line) => `\n${line}\n`).join(''));
  return withoutSecret(Buffer.concat([log, more]), host.secretOf(sessionId(epoch)));
}

async function keepsProcesses(host: Host, { start }: AwaitAgent, { state }: ProcessStatus): Promise<boolean> {
  if (state === 'running') return false;
  return start?.task.gradedIn === 'same' && (await host.tasks.open(start.task)).keepProcesses;
}

/** Opens the proxy of the agent; undefined if its task has no network. */
async function openAgentEgress(host: Host, { start }: AwaitAgent, { name }: Sandbox): Promise<OpenEgress | undefined> {
  const policy = start?.task.network;
  return hasNetwork(policy) ? openEgress(host, { sandbox: name, phase: 'agent', policy }) : undefined;
}

/** Returns the use that an agent made of its network, with the hosts where its task's solution may be. */
async function useOf(host: Host, egress: OpenEgress, task: Task | undefined): Promise<NetworkUse> {
  const use = await egress.end();
  const { solution } = task === undefined ? { solution: new Map() } : await host.tasks.open(task);
  const flags = firstOfEach(flagSolutionHosts(egress.rows(), solution));
  return flags.length === 0 ? use : { ...use, flags };
}

interface Carried {
  readonly sandbox: Sandbox;
  readonly token: string | null;
  readonly egress: Egress | undefined;
}

/** Carries the agent's model calls, and its connections to the outside, while this activity attempt waits for its end. */
function holdChannel(host: Host, { epoch, agent }: AwaitAgent, { sandbox, token, egress }: Carried): Held {
  const { channel = 'socket' } = sandbox.labels;
  const { usesModel } = host.agent(agent);
  const { log } = Context.current();
  return createChannels(host.gatewaySockets)[channel].hold(sandbox, {
    session: usesModel ? sessionId(epoch) : null,
    egress,
    // The relay uses the newest channel, which must be that of the host that has adopted it.
    ready: (signal) => host.mayAct(token, signal),
    onOutage: (cause) =>
      log.warn('the channel to a sandbox does not hold; it is opened again', { agent, sandbox: sandbox.name, cause }),
  });
}

/** Ends the agent and every process it left behind, so that nothing changes the workspace while its diff is captured. */
async function endAgent(sandbox: Sandbox, agentKey: string, state: 'running' | 'exited'): Promise<void> {
  // Kill the whole account first: searching a fork bomb's processes by key is slower than the bomb makes new ones.
  await sandbox.killProcesses('agent');
  // The log of a running process is complete only once its end is recorded.
  if (state === 'running') await sandbox.kill(agentKey);
}

function stopOf(host: Host, agent: string, status: Extract<ProcessStatus, { state: 'exited' }>): StopReason {
  if (status.limit === 'memory') return 'memory-limit';
  if (status.limit === 'disk') return 'disk-limit';
  return status.signal === undefined ? host.agent(agent).stopReason(status.exitCode) : 'killed';
}

/** Scores an agent that ended its own sandbox as killed. */
async function endedItself(host: Host): Promise<AgentEnd> {
  const text = 'The agent brought its own sandbox down.\n';
  return { stop: 'killed', exitCode: null, log: await host.store.put(Buffer.from(text), 'text/plain') };
}

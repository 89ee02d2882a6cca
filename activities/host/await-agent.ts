import { Context } from '@temporalio/activity';
import type { Held } from '../../infra/gateway/channel/hold.ts';
import { createChannels } from '../../infra/gateway/channel/index.ts';
import { blamingBrokenPrograms } from '../../infra/sandbox/broken-programs.ts';
import { wasEndedInside } from '../../infra/sandbox/failure.ts';
import type { ProcessStatus, Sandbox } from '../../infra/sandbox/sandbox.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import { cancelRequested } from '../boundary.ts';
import type { AwaitAgent } from '../interfaces/host.ts';
import { endedItself, type KnownStatus, type RecordedEnd, recordEnd } from './agent-end.ts';
import { type InTime, waitInTime } from './agent-time.ts';
import { collect, notCollected } from './collect.ts';
import { agentKeyOf, type Host } from './host.ts';
import { hasNetwork, type OpenEgress, openEgress } from './network.ts';

/** An agent that was started. */
export interface RunningAgent {
  readonly sandbox: Sandbox;
  /** The time at which this activity attempt started it, by this process's own clock; null if another one did. */
  readonly startedAtMs: number | null;
  /** Whether it is known that the agent began. */
  readonly sawStart: boolean;
}

/** An agent whose model calls and connections this activity attempt carries. */
interface CarriedAgent extends RunningAgent {
  /** The fencing token of this host when it began. Another host may adopt the agent if this one is declared lost meanwhile. */
  readonly token: string | null;
  readonly egress: OpenEgress | undefined;
}

/**
 * Watches the agent until it ends or its time is over. An activity attempt after a worker's death continues with what is left
 * of the time, by the clock of the sandbox. Only a real cancel ends the agent; a shutdown leaves it alone.
 */
export async function awaitAgent(
  host: Host,
  input: AwaitAgent,
  running: RunningAgent,
  signal: AbortSignal,
): Promise<RecordedEnd> {
  try {
    return await blamingBrokenPrograms(running.sandbox, () => watchAgent(host, input, running, signal));
  } catch (error) {
    if (wasEndedInside(error)) return endedItself(host);
    throw error;
  }
}

async function watchAgent(
  host: Host,
  input: AwaitAgent,
  running: RunningAgent,
  signal: AbortSignal,
): Promise<RecordedEnd> {
  const { sandbox } = running;
  const token = host.fence();
  const egress = await openAgentEgress(host, input, sandbox);
  const { status, waitedMs } = await untilOver(host, input, { ...running, token, egress }, signal);
  if (!isKnown(status)) return endUnknown(host, input, running, status);
  await host.mayAct(token, signal);
  const furtherLines = await endAndCollect(host, input, { sandbox, status }, signal);
  const end = await recordEnd(host, input, { sandbox, status, egress, furtherLines });
  return waitedMs === null ? end : { ...end, waitedMs };
}

const isKnown = (status: ProcessStatus): status is KnownStatus =>
  status.state === 'running' || status.state === 'exited';

/**
 * Carries an agent until it has ended or its time is over, and returns its status then, also if an earlier activity attempt has
 * ended it since. The clock stands still while the agent waits for an engine. A cancelled agent is ended.
 */
async function untilOver(host: Host, input: AwaitAgent, carried: CarriedAgent, signal: AbortSignal): Promise<InTime> {
  const { sandbox, token, egress } = carried;
  const agentKey = agentKeyOf(input.start.task.step);
  const channel = holdChannel(host, input, carried);
  try {
    const startedAtMs = carried.startedAtMs ?? performance.now() - (await sandbox.ageMs(agentKey, signal));
    const elapsedMs = (): number => performance.now() - startedAtMs;
    const waitedMs = (): Promise<number> => waitedSince(host, input, signal);
    const inTime = await waitInTime({ ...input, sandbox, key: agentKey, elapsedMs, waitedMs }, signal);
    // The agent of a later step has the time for which it waits itself.
    const { step } = input.start.task;
    return step === undefined ? inTime : { ...inTime, waitedMs: inTime.waitedMs ?? (await waitedMs()) };
  } catch (error) {
    if (cancelRequested(signal) && host.acts(token)) await endAgent(sandbox, agentKey, 'running');
    throw error;
  } finally {
    channel.close();
    egress?.close();
  }
}

/** Asks the gateway how long this agent has waited for an engine. One that calls no model never waits. */
async function waitedSince(
  host: Host,
  { epoch, agent, waitedBeforeMs = 0 }: AwaitAgent,
  signal: AbortSignal,
): Promise<number> {
  if (!host.agent(agent).usesModel) return 0;
  const status = await host.sessions.status(sessionId(epoch), signal);
  return Math.max(0, (status?.waitedMs ?? 0) - waitedBeforeMs);
}

/** Scores an agent that is root and erased its own records. Throws AgentStateUnknown for any other. */
function endUnknown(
  host: Host,
  { start }: AwaitAgent,
  { sandbox, sawStart }: RunningAgent,
  status: Exclude<ProcessStatus, KnownStatus>,
): Promise<RecordedEnd> {
  // The records are out of reach of every agent but one that is root.
  if (sawStart && start.task.user === 'root') return endedItself(host);
  const evidence = status.state === 'unknown' ? status.evidence : 'it was never started';
  throw new TemperFailure('AgentStateUnknown', `whether the agent ran in ${sandbox.name} is unknown: ${evidence}`);
}

/** Ends what is left of an agent, and runs what its task collects. Returns a line for each command that failed. */
async function endAndCollect(
  host: Host,
  input: AwaitAgent,
  { sandbox, status }: { readonly sandbox: Sandbox; readonly status: KnownStatus },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const agentKey = agentKeyOf(input.start.task.step);
  // Tests may need what an agent that ended by itself has left. One that ran out of time is ended with all it started.
  if (status.state === 'running') {
    await sandbox.noteTimeOver(agentKey);
    await endAgent(sandbox, agentKey, 'running');
  }
  const uncollected = await collectAfter(host, input, sandbox, signal);
  if (!(await keepsProcesses(host, input, status))) await endAgent(sandbox, agentKey, 'exited');
  return uncollected;
}

/** Runs what a task collects from its agent's sandbox. Returns a line for each command that failed. */
async function collectAfter(
  host: Host,
  { start, kind }: AwaitAgent,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { task } = start;
  const files = await host.tasks.open(task);
  if (files.collect.length === 0) return [];
  try {
    const path = host.pathOf(kind);
    return await blamingBrokenPrograms(sandbox, () => collect(sandbox, { task, files, path }, signal));
  } catch (error) {
    // The agent has left a sandbox in which nothing runs, which its diff will show.
    if (wasEndedInside(error)) return [notCollected(error.message)];
    throw error;
  }
}

async function keepsProcesses(host: Host, { start }: AwaitAgent, { state }: ProcessStatus): Promise<boolean> {
  if (state === 'running') return false;
  return start.task.gradedIn === 'same' && (await host.tasks.open(start.task)).keepProcesses;
}

/** Opens the proxy of the agent; undefined if its task has no network. */
async function openAgentEgress(host: Host, { start }: AwaitAgent, { name }: Sandbox): Promise<OpenEgress | undefined> {
  const policy = start.task.network;
  return hasNetwork(policy) ? openEgress(host, { sandbox: name, phase: 'agent', policy }) : undefined;
}

/** Carries the agent's model calls, and its connections to the outside, while this activity attempt waits for its end. */
function holdChannel(host: Host, { epoch, agent }: AwaitAgent, { sandbox, token, egress }: CarriedAgent): Held {
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

import { flagSolutionHosts } from '../../infra/egress/solution-hosts.ts';
import { referenceAnswer } from '../../infra/grading/answer.ts';
import { readLog, withoutSecrets } from '../../infra/sandbox/process-log.ts';
import type { ProcessStatus, Sandbox } from '../../infra/sandbox/sandbox.ts';
import { firstOfEach } from '../../workflows/algorithms/flags.ts';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import type { NetworkUse } from '../../workflows/contracts/network.ts';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { AgentEnd, AwaitAgent } from '../interfaces/host.ts';
import { agentKeyOf, type Host } from './host.ts';
import type { OpenEgress } from './network.ts';

/** The end of an agent, without the stages that share its activity. */
export type RecordedEnd = Omit<AgentEnd, 'startSeconds'>;

/** The status of an agent that has ended, or whose time is over. */
export type KnownStatus = Extract<ProcessStatus, { readonly state: 'running' | 'exited' }>;

/** The traces of an agent that has ended. */
export interface AgentTraces {
  readonly sandbox: Sandbox;
  /** The agent's status before it was ended. */
  readonly status: KnownStatus;
  readonly egress: OpenEgress | undefined;
  /** The lines that follow the agent's own output in its log. */
  readonly furtherLines: readonly string[];
}

/** Records the end of an agent: why it stopped, its log, its answer and its use of the network. */
export async function recordEnd(
  host: Host,
  input: AwaitAgent,
  { sandbox, status, egress, furtherLines }: AgentTraces,
): Promise<RecordedEnd> {
  const log = await host.store.put(await whatWasSaid(host, input, sandbox, furtherLines), 'text/plain');
  const answer = await answerOfSolution(host, input);
  const network = egress === undefined ? {} : { network: await useOf(host, egress, input.start.task) };
  const more = { ...(answer !== null && { answer }), ...network };
  if (status.state === 'running') return { stop: 'deadline', exitCode: null, log, ...more };
  return { stop: stopOf(host, input.agent, status), exitCode: status.exitCode, log, ...more };
}

/** Scores an agent that ended its own sandbox as killed. */
export async function endedItself(host: Host): Promise<RecordedEnd> {
  const text = 'The agent brought its own sandbox down.\n';
  return { stop: 'killed', exitCode: null, log: await host.store.put(Buffer.from(text), 'text/plain') };
}

/** Returns the agent's log, with further lines at its end. */
async function whatWasSaid(host: Host, { epoch, start }: AwaitAgent, sandbox: Sandbox, lines: readonly string[]) {
  const log = await readLog(sandbox, agentKeyOf(start.task.step));
  const more = Buffer.from(lines.map((line) => `\n${line}\n`).join(''));
  return withoutSecrets(Buffer.concat([log, more]), host.secretsOf(sessionId(epoch)));
}

/** Returns the answer of the reference solution, for an agent that applies it, which calls no tools. */
async function answerOfSolution(host: Host, { agent, start }: AwaitAgent): Promise<BlobRef | null> {
  if (start.task.hostTools?.includes('answer') !== true || !host.agent(agent).needsSolution) return null;
  const answer = referenceAnswer(await host.tasks.open(start.task));
  return answer === null ? null : host.store.put(answer, 'text/plain');
}

/** Returns the use that an agent made of its network, with the hosts where its task's solution may be. */
async function useOf(host: Host, egress: OpenEgress, task: Task): Promise<NetworkUse> {
  const use = await egress.end();
  const { solution } = await host.tasks.open(task);
  const flags = firstOfEach(flagSolutionHosts(egress.rows(), solution));
  return flags.length === 0 ? use : { ...use, flags };
}

function stopOf(host: Host, agent: string, status: Extract<ProcessStatus, { state: 'exited' }>): StopReason {
  if (status.limit === 'memory') return 'memory-limit';
  if (status.limit === 'disk') return 'disk-limit';
  return status.signal === undefined ? host.agent(agent).stopReason(status.exitCode) : 'killed';
}

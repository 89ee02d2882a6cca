import { Context } from '@temporalio/activity';
import { captureDiff, emptyDiff } from '../../infra/grading/capture/capture-diff.ts';
import { SandboxFailure } from '../../infra/sandbox/failure.ts';
import { readLog } from '../../infra/sandbox/process-log.ts';
import type { ProcessStatus, Sandbox } from '../../infra/sandbox/sandbox.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import { atBoundary, cancelRequested } from '../boundary.ts';
import type { AgentEnd, AwaitAgent, CaptureDiff, HostActivities, StartAgent } from '../interfaces/host.ts';
import { attachAgentSandbox, type Host } from './host.ts';

const agentKey = 'agent';
/** The gateway's address inside the sandbox, where the relay listens; see infra/agents. */
const gatewayUrl = 'http://127.0.0.1:8080';

export function createAgentActivities(host: Host): Pick<HostActivities, 'startAgent' | 'awaitAgent' | 'captureDiff'> {
  return {
    startAgent: (input) => atBoundary((signal) => startAgent(host, input, signal)),
    awaitAgent: (input) => atBoundary((signal) => awaitAgent(host, input, signal)),
    captureDiff: (input) => atBoundary((signal) => capture(host, input, signal)),
  };
}

async function startAgent(host: Host, input: StartAgent, signal: AbortSignal) {
  const { epoch, task, kind, maxTurns } = input;
  const spec = host.agent(input.agent);
  const sandbox = await attachAgentSandbox(host, epoch, kind);
  const { instruction, env, solutionEnv } = await host.tasks.open(task);
  const command = spec.command({
    instruction,
    workdir: task.workdir,
    baseUrl: spec.usesModel ? gatewayUrl : null,
    secret: spec.usesModel ? host.secretOf(sessionId(epoch)) : null,
    maxTurns,
    contextLength: input.contextLength,
  });
  const [program, ...args] = command.argv;
  if (program === undefined) throw new TemperFailure('UnknownAgent', `agent ${spec.name} has an empty command`);
  const path = host.pathOf(kind);
  const taskEnv = spec.needsSolution ? { ...env, ...solutionEnv } : env;
  const started = await sandbox.start(
    {
      key: agentKey,
      account: 'agent',
      cwd: task.workdir,
      argv: [program, ...args],
      env: { ...taskEnv, ...(path !== null && { PATH: path }), ...command.env },
      files: command.files.size > 0 ? [{ tree: command.files, at: '/home/agent', owner: 'agent' }] : [],
    },
    signal,
  );
  return { started };
}

/**
 * Watches the agent until it ends or its time is over. The time counts from when the stage was scheduled, so an activity
 * attempt after a worker's death continues with what is left. Only a real cancel ends the agent; a shutdown leaves it alone.
 */
async function awaitAgent(host: Host, input: AwaitAgent, signal: AbortSignal): Promise<AgentEnd> {
  const sandbox = await attachAgentSandbox(host, input.epoch, input.kind);
  const deadline = Context.current().info.scheduledTimestampMs + input.timeoutMs;
  let status: ProcessStatus;
  try {
    const { diskBeforeMb } = input;
    status = await sandbox.wait(agentKey, { timeoutMs: Math.max(0, deadline - Date.now()), diskBeforeMb }, signal);
    signal.throwIfAborted();
  } catch (error) {
    if (cancelRequested()) await endAgent(sandbox, 'running');
    if (error instanceof SandboxFailure && error.loss === 'ended-inside') return endedItself(host);
    throw error;
  }
  if (status.state === 'unknown' || status.state === 'absent') {
    const evidence = status.state === 'unknown' ? status.evidence : 'it was never started';
    throw new TemperFailure('AgentStateUnknown', `whether the agent ran in ${sandbox.name} is unknown: ${evidence}`);
  }
  await endAgent(sandbox, status.state);
  const said = withoutSecret(await readLog(sandbox, agentKey), host.secretOf(sessionId(input.epoch)));
  const log = await host.store.put(said, 'text/plain');
  if (status.state === 'running') return { stop: 'deadline', exitCode: null, log };
  return { stop: stopOf(host, input.agent, status), exitCode: status.exitCode, log };
}

/** Removes the session's secret, which the agent's commands may have printed. Latin-1 keeps every byte. */
function withoutSecret(log: Buffer, secret: string): Buffer {
  return log.includes(secret) ? Buffer.from(log.toString('latin1').replaceAll(secret, '(secret)'), 'latin1') : log;
}

/** Ends the agent and every process it left behind, so that nothing changes the workspace while its diff is captured. */
async function endAgent(sandbox: Sandbox, state: 'running' | 'exited'): Promise<void> {
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

async function capture(host: Host, input: CaptureDiff, signal: AbortSignal) {
  const { epoch, kind, task, baseCommit } = input;
  const retried = Context.current().info.attempt > 1;
  try {
    const sandbox = await attachAgentSandbox(host, epoch, kind);
    return await captureDiff(sandbox, host.store, { workdir: task.workdir, baseCommit, retried }, signal);
  } catch (error) {
    if (error instanceof SandboxFailure && error.loss === 'ended-inside') return emptyDiff(host.store, baseCommit);
    throw error;
  }
}

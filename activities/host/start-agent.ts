import { ApplicationFailure, Context } from '@temporalio/activity';
import type { AgentCommand } from '../../infra/agents/agent.ts';
import { networkVariablesFor } from '../../infra/agents/network-variables.ts';
import { channelVariable, holdVariable } from '../../infra/agents/relay/protocol.ts';
import { throughEgress } from '../../infra/agents/relay.ts';
import { patientAttempts } from '../../infra/grading/late.ts';
import { byImage } from '../../infra/sandbox/image-environment.ts';
import { loopbackPorts } from '../../infra/sandbox/loopback-ports.ts';
import type { StartRequest } from '../../infra/sandbox/sandbox.ts';
import { homeOf } from '../../infra/sandbox/shell/accounts.ts';
import { usingWhatAgentLeft } from '../../infra/sandbox/what-agent-left.ts';
import { withTimeLimit } from '../../infra/time-limit.ts';
import { type AgentProgress, readAgentProgress } from '../../workflows/contracts/agent-progress.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import { startAttempts, startMs } from '../../workflows/contracts/stage-limits.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { atBoundary } from '../boundary.ts';
import type { StartAgent } from '../interfaces/host.ts';
import { beginStep, blamingEarlierStep } from './begin-step.ts';
import { type AgentSandbox, agentKeyOf, attachAgentSandbox, type Host } from './host.ts';
import { hasNetwork } from './network.ts';

/** Returns the gateway's address inside the sandbox, where the relay listens; see infra/agents. */
const gatewayUrl = ({ services }: Pick<Task, 'services'>): string =>
  `http://127.0.0.1:${services === undefined ? loopbackPorts.gateway : loopbackPorts.gatewayBesideServices}`;
/** The delay of the first report. It is a write at the server, which an agent that has ended by then does not need. */
const firstReportMs = 1000;

/** Starts the agent in its sandbox, unless it was started already. Returns the sandbox, too. */
export async function startAgent(host: Host, input: StartAgent & Pick<AgentSandbox, 'adoptedAs'>, signal: AbortSignal) {
  const { task } = input;
  const spec = host.agent(input.agent, input.agentOptions);
  const sandbox = await blamingEarlierStep(task.step, () => attachAgentSandbox(host, input));
  const left = { sandbox, failedBefore: Context.current().info.attempt > patientAttempts };
  const inStep = <Result>(work: () => Promise<Result>): Promise<Result> =>
    blamingEarlierStep(task.step, () => ((task.step ?? 1) === 1 ? work() : usingWhatAgentLeft(left, work, signal)));
  const opened = await host.tasks.open(task);
  const { env, solutionEnv } = opened;
  const key = agentKeyOf(task.step);
  const command = await agentCommand(host, input);
  const isNetworked = hasNetwork(task.network);
  const [program, ...args] = isNetworked && !spec.usesModel ? throughEgress(command.argv) : command.argv;
  if (program === undefined) throw new TemperFailure('UnknownAgent', `agent ${spec.name} has an empty command`);
  const path = host.pathOf(input.kind);
  if (task.step !== undefined) {
    const step = { task, key, files: opened, spec, path, secrets: host.secretsOf(sessionId(input.epoch)) };
    await inStep(() => beginStep(sandbox, step, signal));
  }
  const { channel } = sandbox.labels;
  const taskEnv = spec.needsSolution ? { ...env, ...solutionEnv } : env;
  const home = homeOf('agent', { root: task.user === 'root' });
  const request: StartRequest = {
    key,
    account: 'agent',
    cwd: task.workdir,
    ...byImage([program, ...args]),
    env: {
      ...taskEnv,
      ...(path !== null && { PATH: path }),
      ...(isNetworked && networkVariablesFor(task)),
      ...command.env,
      ...(channel !== undefined && { [channelVariable]: channel, [holdVariable]: String(host.holdMs) }),
    },
    files: command.files.size > 0 ? [{ tree: command.files, at: home, owner: 'agent' }] : [],
  };
  const started = await inStep(() => sandbox.start(request, signal));
  return { started, sandbox };
}

/** Returns the command of an agent, with the files that it is started with. */
export async function agentCommand(host: Host, input: Omit<StartAgent, 'kind'>): Promise<AgentCommand> {
  const { epoch, task, agent, agentOptions, maxTurns, contextLength, hostTools = [] } = input;
  const spec = host.agent(agent, agentOptions);
  const { instruction, mcpServers } = await host.tasks.open(task);
  return spec.command({
    instruction,
    workdir: task.workdir,
    baseUrl: spec.usesModel ? gatewayUrl(task) : null,
    secret: spec.usesModel ? host.secretsOf(sessionId(epoch))[0] : null,
    maxTurns,
    contextLength,
    hostTools,
    mcpServers,
  });
}

/** An agent that was started, and the reports that say so. */
interface StartedAgent<Started> {
  /** Result of the start; undefined if an earlier activity attempt started the agent. */
  readonly started: Started | undefined;
  /** The time that this activity attempt took to start it. */
  readonly startSeconds: number;
}

/**
 * Starts the agent as the first stage of the activity that waits for its end, and then waits. An activity attempt after a
 * worker's death learns from the heartbeats of the one before that the agent was started. The start has a time limit and a
 * number of attempts of its own, and its failures say that they are of this stage.
 */
export async function startThenWait<Started, End>(
  start: (signal: AbortSignal) => Promise<Started>,
  wait: (agent: StartedAgent<Started>, signal: AbortSignal) => Promise<End>,
): Promise<End> {
  const { attempt, heartbeatDetails } = Context.current().info;
  let progress: AgentProgress = readAgentProgress(heartbeatDetails) ?? { stage: 'startAgent' };
  try {
    return await atBoundary(async (signal, report) => {
      const reports = reportsOf(() => progress, report);
      try {
        if (progress.stage === 'awaitAgent') return await wait({ started: undefined, startSeconds: 0 }, signal);
        const beganAtMs = performance.now();
        const started = await withTimeLimit({ limitMs: startMs, late }, start, signal);
        progress = { stage: 'awaitAgent' };
        reports.changed();
        return await wait({ started, startSeconds: (performance.now() - beganAtMs) / 1000 }, signal);
      } finally {
        reports.close();
      }
    });
  } catch (error) {
    throw progress.stage === 'startAgent' ? ofStart(error, attempt) : error;
  }
}

const late = new TemperFailure('SandboxUnavailable', `the agent was not started within ${startMs / 1000} s`);

/** Reports the progress once a second is over, and from then on whenever it changes. */
function reportsOf(progress: () => AgentProgress, report: (progress: AgentProgress) => void) {
  let due = false;
  const timer = setTimeout(() => {
    due = true;
    report(progress());
  }, firstReportMs);
  return {
    changed: (): void => {
      if (due) report(progress());
    },
    close: (): void => clearTimeout(timer),
  };
}

/** Names the stage of a failure that the boundary has attributed, and makes it final after the last attempt. */
function ofStart(error: unknown, attempt: number): unknown {
  if (!(error instanceof ApplicationFailure)) return error;
  const progress: AgentProgress = { stage: 'startAgent' };
  return ApplicationFailure.create({
    type: error.type ?? 'Internal',
    message: error.message,
    nonRetryable: error.nonRetryable === true || attempt >= startAttempts,
    details: [progress],
    ...(error.nextRetryDelay != null && { nextRetryDelay: error.nextRetryDelay }),
    ...(error.cause !== undefined && { cause: error.cause }),
  });
}

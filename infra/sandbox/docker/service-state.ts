import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { SandboxFailure } from '../failure.ts';
import type { SandboxService, ServiceDependency } from '../service.ts';
import { callDaemon, explainLoss, orIfMissing } from './daemon.ts';

/** The time until all services of a sandbox are ready; the stages have time for it. */
export const readyMs = 240_000;
const firstPauseMs = 50;
const longestPauseMs = 1_000;
const shownLines = 30;
const shownCharacters = 600;

/** `ready`: healthy if it has a check, otherwise running, or ended without an error. */
export type ServiceGoal = ServiceDependency['until'] | 'ready';

export interface StartedService {
  readonly docker: Docker;
  readonly service: SandboxService;
  readonly container: Docker.Container;
}

/** Waits until a service has reached a goal. Throws SetupFailed, with the end of its log, if it does not. */
export async function awaitService(
  started: StartedService,
  goal: ServiceGoal,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    signal.throwIfAborted();
    const info = await callDaemon(() => started.container.inspect()).catch(orIfMissing);
    if (info === undefined) throw await lost(started);
    const { State: state } = info;
    const problem = problemOf(state, goal);
    if (problem !== null) throw (await killedOutside(started, state)) ?? (await failed(started, problem));
    if (isReached(state, goal)) return;
    if (performance.now() > deadlineMs) {
      throw await failed(started, `is not ${goal} after ${readyMs / 1000} s, but ${describe(state)}`);
    }
    await delay(pauseMs, undefined, { signal });
  }
}

type State = Docker.ContainerInspectInfo['State'];

const hasEnded = ({ Status: status }: State): boolean => status === 'exited' || status === 'dead';

/** Returns the reason why a service can no longer reach a goal; null if it still can. */
function problemOf(state: State, goal: ServiceGoal): string | null {
  if (hasEnded(state)) {
    const memory = state.OOMKilled ? ', because it used more than its memory (mem_limit)' : '';
    if (state.ExitCode !== 0) return `ended with exit code ${state.ExitCode}${memory}`;
    return goal === 'healthy' ? 'ended before it was healthy' : null;
  }
  if (goal === 'completed') return null;
  if (state.Health?.Status === 'unhealthy') return 'is unhealthy';
  const isUnchecked = state.Health === undefined || state.Health.Status === 'none';
  return goal === 'healthy' && isUnchecked ? 'has no health check that another service could wait for' : null;
}

function isReached(state: State, goal: ServiceGoal): boolean {
  if (hasEnded(state)) return goal !== 'healthy';
  if (goal === 'completed' || state.Status !== 'running') return false;
  if (goal === 'started') return true;
  const health = state.Health?.Status ?? 'none';
  return health === 'healthy' || (health === 'none' && goal === 'ready');
}

const describe = ({ Status: status, Health: health }: State): string =>
  health === undefined ? status : `${status} and ${health.Status}`;

/** The smallest exit code of a process that a signal has ended. */
const bySignal = 128;

/** Returns the loss of a service that was ended from outside, which is not the task's failure. */
async function killedOutside({ docker, container }: StartedService, state: State): Promise<SandboxFailure | undefined> {
  if (!hasEnded(state) || state.ExitCode < bySignal || state.OOMKilled) return undefined;
  const loss = await explainLoss(docker, container.id, container.id);
  return loss?.loss === 'killed-outside' ? loss : undefined;
}

const lost = async ({ docker, container }: StartedService): Promise<SandboxFailure> =>
  (await explainLoss(docker, container.id, container.id)) ??
  new SandboxFailure('SandboxUnavailable', `the container ${container.id} of a service was away for a moment`);

/** The failure of a service, which is the task's, with the end of its log. */
async function failed({ service, container }: StartedService, problem: string): Promise<TemperFailure> {
  const log = await tailOf(container, service.tty);
  const said = log === '' ? 'it wrote no log' : `the end of its log: ${log}`;
  return new TemperFailure('SetupFailed', `the service ${service.name} of the task ${problem}; ${said}`);
}

async function tailOf(container: Docker.Container, isPlain: boolean): Promise<string> {
  const options = { stdout: true, stderr: true, tail: shownLines, follow: false } as const;
  const log = await callDaemon(() => container.logs(options));
  return (isPlain ? log.toString('utf8') : withoutHeaders(log)).trim().slice(-shownCharacters);
}

/** Removes the header of eight bytes that the daemon puts before each part of a log without a terminal. */
function withoutHeaders(log: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= log.byteLength; ) {
    const end = at + 8 + log.readUInt32BE(at + 4);
    parts.push(log.subarray(at + 8, end));
    at = end;
  }
  return Buffer.concat(parts).toString('utf8');
}

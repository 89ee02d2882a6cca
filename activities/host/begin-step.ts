import type { Agent } from '../../infra/agents/agent.ts';
import { awaitHealthy } from '../../infra/grading/workspace/health-check.ts';
import type { HarborTask } from '../../infra/harbor/harbor-task.ts';
import { FileRefused, wasEndedInside } from '../../infra/sandbox/failure.ts';
import { inImage } from '../../infra/sandbox/image-environment.ts';
import { readLog, withoutSecrets } from '../../infra/sandbox/process-log.ts';
import type { ProcessStatus, PutFiles, Sandbox } from '../../infra/sandbox/sandbox.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';

/** The time for a step's files, set-up and health check, which the start of its agent includes. */
const limitMs = 240_000;
const shownCharacters = 300;

interface StepToBegin {
  readonly task: Task;
  readonly files: HarborTask;
  /** The key of the agent's process in this step. */
  readonly key: string;
  readonly spec: Pick<Agent, 'needsSolution'>;
  /** PATH of commands; null keeps the sandbox's own. */
  readonly path: string | null;
  /** The secrets of the rollout's session, which no message may show. */
  readonly secrets: readonly string[];
}

/**
 * Puts a step's files into the sandbox, runs its `setup.sh` as the agent, and waits until the sandbox is healthy. Repeatable: it
 * does nothing once the agent of this step was started. Throws SetupFailed; after the first step, an earlier agent may have caused
 * it.
 */
export async function beginStep(sandbox: Sandbox, step: StepToBegin, signal: AbortSignal): Promise<void> {
  if ((await sandbox.status(step.key)).state === 'absent') await setUp(sandbox, step, signal);
}

/** Does the first work of a step. If an agent of an earlier step brought the sandbox down, it throws SetupFailed. */
export async function blamingEarlierStep<Result>(
  step: number | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const why = doneBefore(error);
    if (step === undefined || why === null) throw error;
    throw new TemperFailure('SetupFailed', `step ${step} could not begin: ${why}`, { cause: error });
  }
}

/** Returns what an agent has done to the sandbox that makes work in it fail; null if the failure has another cause. */
function doneBefore(error: unknown): string | null {
  if (wasEndedInside(error)) return 'the sandbox was brought down from inside';
  // It may have closed a directory to itself, or put something else in the place of a file.
  return error instanceof FileRefused ? error.message : null;
}

async function setUp(
  sandbox: Sandbox,
  { task, files, spec, path, secrets }: StepToBegin,
  signal: AbortSignal,
): Promise<void> {
  const { begin, env, solution } = files;
  if (begin === null) return;
  const deadlineMs = performance.now() + limitMs;
  const { workdir, step } = task;
  const commandEnv = { ...env, ...(path !== null && { PATH: path }) };
  const placed: readonly PutFiles[] = [
    { tree: begin.workdir, at: workdir, owner: 'agent' },
    // The first step's solution is there already.
    ...(spec.needsSolution && step !== 1 ? [{ tree: solution, at: '/solution', owner: 'agent' } as const] : []),
  ];
  const key = `step-${step}`;
  const command = inImage(begin.workdir.has('setup.sh') ? ['bash', `${workdir}/setup.sh`] : ['true']);
  // The start also writes the files, and a repeated start does neither, so that no later work is undone.
  await sandbox.start({ key, account: 'agent', cwd: workdir, ...command, env: commandEnv, files: placed }, signal);
  const status = await sandbox.wait(key, { timeoutMs: limitMs }, signal);
  if (status.state === 'unknown' || status.state === 'absent') {
    throw new TemperFailure('AgentStateUnknown', `whether the set-up of ${key} ran in ${sandbox.name} is unknown`);
  }
  if (status.state === 'running' || status.exitCode !== 0) throw await setupFailed(sandbox, { key, status, secrets });
  if (begin.healthCheck !== null) await awaitHealthy(sandbox, begin.healthCheck, { workdir, env, deadlineMs }, signal);
}

interface FailedSetup {
  readonly key: string;
  readonly status: Extract<ProcessStatus, { state: 'running' | 'exited' }>;
  readonly secrets: readonly string[];
}

async function setupFailed(sandbox: Sandbox, { key, status, secrets }: FailedSetup): Promise<TemperFailure> {
  // The log of a running process is complete only once its end is recorded.
  await sandbox.killProcesses('agent');
  if (status.state === 'running') await sandbox.kill(key);
  const said = withoutSecrets(await readLog(sandbox, key), secrets)
    .toString('utf8')
    .trim()
    .slice(-shownCharacters);
  const how = status.state === 'running' ? `it took more than ${limitMs / 1000} s` : `exit code ${status.exitCode}`;
  const output = said === '' ? 'it printed nothing' : said;
  return new TemperFailure('SetupFailed', `setup.sh of ${key} failed: ${how}: ${output}; run it in the task's image`);
}

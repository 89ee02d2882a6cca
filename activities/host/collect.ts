import type { HarborTask } from '../../infra/harbor/harbor-task.ts';
import { uncollected } from '../../infra/harbor/task-steps.ts';
import { inImage } from '../../infra/sandbox/image-environment.ts';
import type { ProcessStatus, Sandbox } from '../../infra/sandbox/sandbox.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { agentKeyOf } from './host.ts';

interface Collecting {
  readonly task: Task;
  readonly files: Pick<HarborTask, 'collect' | 'env'>;
  /** PATH of commands; null keeps the sandbox's own. */
  readonly path: string | null;
}

/**
 * Runs the commands by which a task keeps what is not in files, after the agent's end and under its account: they may run what it
 * left. Repeatable. Returns a line for each command that failed; as in Harbor, the rollout continues then.
 */
export async function collect(
  sandbox: Sandbox,
  { task, files, path }: Collecting,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const env = { ...files.env, ...(path !== null && { PATH: path }) };
  const failures: string[] = [];
  for (const [index, { command, timeoutSec }] of files.collect.entries()) {
    const key = `${agentKeyOf(task.step)}-collect-${index + 1}`;
    const started = inImage(['sh', '-c', command]);
    await sandbox.start({ key, account: 'agent', cwd: task.workdir, ...started, env }, signal);
    const status = await sandbox.wait(key, { timeoutMs: timeoutSec * 1000 }, signal);
    if (status.state === 'running') await sandbox.kill(key);
    const failure = failureOf(status);
    if (failure !== null) failures.push(notCollected(`${JSON.stringify(command.slice(0, 120))} ${failure}`));
  }
  return failures;
}

/** Returns the line of an agent's log that says what was not collected, and why. */
export const notCollected = (why: string): string => `${uncollected}: ${why}`;

function failureOf(status: ProcessStatus): string | null {
  if (status.state === 'running') return 'did not end in time';
  if (status.state !== 'exited') return 'left no result';
  return status.exitCode === 0 ? null : `ended with exit code ${status.exitCode}`;
}

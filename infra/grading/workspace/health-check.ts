import { setTimeout as delay } from 'node:timers/promises';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { inImage } from '../../sandbox/image-environment.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { HealthCheck } from '../task.ts';

interface HealthCheckOptions {
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
}

const outputBytes = 4096;
const shownCharacters = 300;

/** Waits until the sandbox of a task is healthy. Throws SetupFailed with the output of the last try. */
export async function awaitHealthy(
  sandbox: Pick<Sandbox, 'exec'>,
  check: HealthCheck,
  { workdir, env, deadlineMs }: HealthCheckOptions,
  signal: AbortSignal,
): Promise<void> {
  const startedAtMs = performance.now();
  for (let failures = 0; ; ) {
    const timeoutMs = Math.max(1, Math.min(check.timeoutSec * 1000, deadlineMs - performance.now()));
    const command = inImage(['sh', '-c', check.command]);
    const limits = { timeoutMs, maxOutputBytes: outputBytes };
    const tried = await sandbox.exec({ account: 'grader', cwd: workdir, ...command, env, ...limits }, signal);
    if (tried.exitCode === 0 && !tried.timedOut) return;
    const isStarting = performance.now() - startedAtMs < check.startPeriodSec * 1000;
    if (!isStarting) failures += 1;
    const pauseMs = (isStarting ? check.startIntervalSec : check.intervalSec) * 1000;
    const isLate = performance.now() + pauseMs >= deadlineMs;
    if (failures >= check.retries || isLate) {
      const ended = tried.timedOut ? 'it ran out of time' : `exit code ${tried.exitCode}`;
      const output = `${tried.stdout}${tried.stderr}`.trim().slice(-shownCharacters);
      throw new TemperFailure(
        'SetupFailed',
        `the health check ${JSON.stringify(check.command.slice(0, 120))} failed ${failures} times${isLate ? ' and the set-up has no more time' : ''}: ${ended}: ${output}`,
      );
    }
    await delay(pauseMs, undefined, { signal });
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import { callDaemon } from './daemon.ts';

const pauseMs = 200;
/** The time for which others may be answered first. The daemon walks through all of its volumes for each answer. */
const longestMs = 60_000;

/**
 * Asks the daemon what takes its disk. Daemons before Docker 23 refuse the question while they answer another one, perhaps of
 * another process; then it is asked again.
 */
export async function readDiskUsage(docker: Pick<Docker, 'df'>, waitMs = longestMs): Promise<unknown> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    try {
      return await callDaemon(() => docker.df());
    } catch (error) {
      if (!/disk usage operation is already running/.test(errorMessage(error))) throw error;
      if (performance.now() >= endMs) {
        const text = `expected the Docker daemon to measure its disk, got no turn in ${waitMs / 1000} s; end other \`docker system df\``;
        throw new SandboxFailure('SandboxUnavailable', text, { cause: error });
      }
      await sleep(pauseMs);
    }
  }
}

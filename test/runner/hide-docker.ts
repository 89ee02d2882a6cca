import { isMainThread } from 'node:worker_threads';
import { needsOf } from './need.ts';

/** The words of files that may reach the Docker engine of this machine. */
const withDocker: readonly string[] = ['docker', 'compose', 'kubernetes', 'reference', 'deploy'];

/**
 * Leads the process that imports it, and all that this starts, to a Docker engine that does not exist, unless the name of its test
 * file says that it needs one. So each run proves that the other files pass on a machine without Docker.
 */
if (isMainThread && !needsOf(process.argv[1] ?? '').some((word) => withDocker.includes(word)))
  process.env.DOCKER_HOST = 'unix:///hidden-by-the-test-runner/docker.sock';

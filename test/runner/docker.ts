import Docker from 'dockerode';
import type { Availability } from './facility.ts';

const PING_TIMEOUT_MS = 5_000;
/** Made by infra/images/build.sh; the Docker tests run in it. */
const TEST_IMAGE = 'temper-tasks:bookworm';
/** What every container of ours carries as the start of a label's name. */
const LABEL_PREFIX = 'temper.';

/** Whether the Docker tests can run here: an engine that answers and the image that they use. */
export async function probeDocker(docker: Docker = defaultEngine()): Promise<Availability> {
  try {
    await docker.ping();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return { usable: false, reason: `no Docker engine answers (${said})` };
  }
  try {
    await docker.getImage(TEST_IMAGE).inspect();
  } catch {
    return { usable: false, reason: `Docker has no image ${TEST_IMAGE}; infra/images/build.sh makes it (as root)` };
  }
  return { usable: true };
}

/** Containers of any temper stack on this machine, by id with their names. */
export async function temperContainers(docker: Docker = defaultEngine()): Promise<ReadonlyMap<string, string>> {
  const containers = await docker.listContainers({ all: true });
  const ours = containers.filter(({ Labels }) => Object.keys(Labels).some((name) => name.startsWith(LABEL_PREFIX)));
  return new Map(ours.map(({ Id, Names }) => [Id, Names[0] ?? Id]));
}

/** The one that DOCKER_HOST names, else this machine's own. */
function defaultEngine(): Docker {
  return new Docker({ timeout: PING_TIMEOUT_MS });
}

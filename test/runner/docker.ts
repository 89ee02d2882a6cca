import Docker from 'dockerode';
import type { Availability } from './need.ts';

/** The time of one answer, which a busy engine may need. Without an engine there is an error at once. */
const answerMs = 60_000;
/** The image that the Docker tests run in; infra/images/build.sh makes it. */
const testImage = 'temper-tasks:bookworm';
/** The start of a label's name that every container of temper carries. */
const labelPrefix = 'temper.';

/** Whether the Docker tests can run here: an engine that answers and the image that they use. */
export async function probeDocker(docker: Docker = defaultEngine()): Promise<Availability> {
  try {
    await docker.ping();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return { usable: false, reason: `no Docker engine answers (${said})` };
  }
  try {
    await docker.getImage(testImage).inspect();
  } catch {
    return { usable: false, reason: `Docker has no image ${testImage}; infra/images/build.sh makes it (as root)` };
  }
  return { usable: true };
}

/** Returns the containers of any temper stack on this machine, by id with their names. */
export async function temperContainers(docker: Docker = defaultEngine()): Promise<ReadonlyMap<string, string>> {
  const containers = await docker.listContainers({ all: true });
  const ours = containers.filter(({ Labels }) => Object.keys(Labels).some((name) => name.startsWith(labelPrefix)));
  return new Map(ours.map(({ Id, Names }) => [Id, Names[0] ?? Id]));
}

/** Returns the engine that DOCKER_HOST names, else this machine's own. */
function defaultEngine(): Docker {
  return new Docker({ timeout: answerMs });
}

import { imageProgressText } from '../../../infra/sandbox/image.ts';
import { openProviders, type Providers } from '../../../infra/sandbox/providers.ts';
import { openStackId } from '../../../infra/stack.ts';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { isRemote, type SandboxChoice, type SandboxKind } from '../../../workflows/contracts/sandbox-kinds.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { isUp, readUpFile } from '../../up/up-file.ts';
import { live } from '../text/output.ts';
import type { StackClient } from './stack-client.ts';

/** The remedies for a kind of sandbox that does not work on a host. */
export const sandboxRemedies: Readonly<Record<SandboxKind, string>> = {
  docker: 'install and start Docker Engine, and allow this user to use its socket; tasks with their own image need it',
  kubernetes: 'check the kubeconfig, the namespace and the rights of this account',
  local: 'install bubblewrap, or allow unprivileged user namespaces',
  e2b: 'check E2B_API_KEY and TEMPER_E2B_URL',
};

interface Wanted {
  readonly choice: SandboxChoice;
  /** The tasks of which the images are wanted. Default: none. */
  readonly tasks?: readonly Task[];
}

/**
 * Refuses what each rollout would find out by itself after minutes of retries: a kind of sandbox that does not work on this
 * machine, and the image of a task whose registry does not answer. It pulls the first image that is missing; the hosts pull the
 * others. Where the hosts are other machines, it checks nothing.
 */
export async function requireSandboxes(
  { choice, tasks = [] }: Wanted,
  { config, shared }: Pick<StackClient, 'config' | 'shared'>,
  signal: AbortSignal,
): Promise<void> {
  const up = await readUpFile(config.paths.up);
  if (up === null || !isUp(up) || !up.parts.some(({ name }) => name === 'host')) return;
  const kind = choice === 'auto' ? config.sandbox : choice;
  if (kind !== 'auto' && isRemote(kind)) return;
  const { paths, docker, dockerConfigDir, env } = config;
  const providers = await openProviders({
    stack: await openStackId(paths, shared.objects),
    root: paths.sandboxes,
    docker,
    images: paths.images,
    accounts: { directory: dockerConfigDir, env },
    preferred: 'auto',
  });
  try {
    if (kind !== 'auto') await requireReady(providers, kind);
    if (kind !== 'local') await requireImage(providers, tasks, signal);
  } finally {
    for (const one of providers.all.values()) await one.close();
  }
}

async function requireReady(providers: Providers, kind: SandboxKind): Promise<void> {
  const why = providers.unusable.get(kind);
  if (why !== undefined) throw notReady(kind, `${kind} sandboxes are not ready on this host: ${why}`);
  await providers.ready(kind).catch((error: unknown) => {
    throw notReady(kind, errorMessage(error));
  });
}

const notReady = (kind: SandboxKind, why: string): Error => new Error(`${why}; ${sandboxRemedies[kind]}`);

async function requireImage(providers: Providers, tasks: readonly Task[], signal: AbortSignal): Promise<void> {
  const docker = (await providers.seen()).get('docker');
  if (docker === undefined) return;
  for (const { id, image, imageFrom } of tasks) {
    if (imageFrom !== 'registry' || (await docker.imageId(image).then(Boolean, () => false))) continue;
    const report: Parameters<typeof docker.prepare>[1] = (progress) => live(imageProgressText(progress));
    try {
      await docker.prepare({ task: id, image, source: 'registry' }, report, signal);
    } catch (error) {
      // Another failure, such as an unknown name, is the outcome of that task alone.
      if (!(error instanceof TemperFailure) || error.type !== 'ImageUnavailable') return;
      throw new Error(`no rollout was started, since task ${id} needs an image: ${error.message}`, { cause: error });
    } finally {
      live('');
    }
    return;
  }
}

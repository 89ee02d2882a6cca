import { kindsOfAuto, type SandboxChoice, sandboxKinds } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { attemptAll } from '../attempt-all.ts';
import type { Spawner } from '../process/spawner/spawner.ts';
import type { OpenBuildProxy } from './docker/images/build-network.ts';
import { createRegistryAccounts, type RegistryAccountsOptions } from './docker/images/registry-accounts.ts';
import { createImageUses } from './docker/images/uses.ts';
import { createDockerProvider } from './docker/provider.ts';
import type { DockerSettings } from './docker/settings.ts';
import type { E2bSettings } from './e2b/settings.ts';
import { SandboxFailure } from './failure.ts';
import type { KubernetesOptions } from './kubernetes/settings.ts';
import { createLocalProvider } from './local/provider.ts';
import type { SandboxKind, SandboxNeeds, SandboxProvider, UnsupportedReason } from './sandbox.ts';

export interface ProviderOptions {
  readonly stack: string;
  readonly docker?: Partial<DockerSettings>;
  /** The namespace of a cluster; absent or null: this host has no such sandboxes. */
  readonly kubernetes?: KubernetesOptions | null;
  /** Directory that records the images temper pulled or built. Default: they are not recorded, and no image is removed. */
  readonly images?: string;
  /** Source of this user's accounts at registries. Default: images are pulled without an account. */
  readonly accounts?: RegistryAccountsOptions;
  /** Opens the networks of image builds. Default: builds have none. */
  readonly buildProxy?: OpenBuildProxy;
  /** Directory of local sandboxes. */
  readonly root: string;
  /** The E2B server and account; absent or null: this host has no such sandboxes. */
  readonly e2b?: E2bSettings | null;
  /** Starts the commands of local sandboxes. Default: this process forks for each. */
  readonly spawner?: Spawner;
}

type Opened = SandboxProvider | undefined;

/** The kinds by name. A factory returns undefined for a kind that is not configured, and loads no library of it. */
const factories: Readonly<Record<SandboxKind, (options: ProviderOptions) => Opened | Promise<Opened>>> = {
  docker: ({ stack, docker, images, accounts, buildProxy }) =>
    createDockerProvider({
      stack,
      ...docker,
      ...(buildProxy !== undefined && { buildProxy }),
      ...(images !== undefined && { uses: createImageUses(images) }),
      ...(accounts !== undefined && { accounts: createRegistryAccounts(accounts) }),
    }),
  kubernetes: async ({ stack, kubernetes }) => {
    if (!kubernetes) return undefined;
    const { createKubernetesProvider } = await import('./kubernetes/provider.ts');
    return createKubernetesProvider({ stack, ...kubernetes });
  },
  local: ({ stack, root, spawner }) => createLocalProvider({ stack, root, ...(spawner && { spawner }) }),
  e2b: async ({ stack, e2b }) => {
    if (!e2b) return undefined;
    const { createE2bProvider } = await import('./e2b/provider.ts');
    return createE2bProvider({ stack, ...e2b });
  },
};

export interface Providers {
  /**
   * Every kind that this host has, or may have once its container engine is up. Use it to find an existing sandbox: an unreachable
   * engine throws, and does not prove that the sandbox is gone.
   */
  readonly all: ReadonlyMap<SandboxKind, SandboxProvider>;
  /** The kinds that can't work on this host, with the reason. A kind that is not configured is not among them. */
  readonly unusable: ReadonlyMap<SandboxKind, string>;
  /** Returns the kinds that have been ready at least once. The others are checked again at each call. */
  seen(): Promise<ReadonlyMap<SandboxKind, SandboxProvider>>;
  /** Returns a kind that is ready now. Throws SandboxUnavailable with the reason if it is not. */
  ready(kind: SandboxKind): Promise<SandboxProvider>;
  /** Returns the provider for a choice and a task, among those seen. Throws a failure that names the task and what it lacks. */
  choose(choice: SandboxChoice, task: PlacedTask, needs: RolloutNeeds): Promise<SandboxProvider>;
}

/** The facts of a task, and of its rollout, that decide the kind of its sandbox. */
type PlacedTask = Pick<
  Task,
  | 'id'
  | 'image'
  | 'imageFrom'
  | 'workdir'
  | 'gpus'
  | 'gpuTypes'
  | 'user'
  | 'services'
  | 'sharedMemoryMb'
  | 'tmpfs'
  | 'hosts'
>;
type RolloutNeeds = Pick<SandboxNeeds, 'filesInImage' | 'lifetimeMs'>;

/** Fixed paths of Harbor's layout, which tests depend on. */
const fixedPaths = ['/tests', '/logs/verifier'];

/**
 * Opens the kinds of sandbox that this host offers. Throws if the preferred kind can't work here, rather than at the first
 * rollout. A kind whose engine is only unreachable is kept, and checked again when it is needed.
 */
export async function openProviders(
  options: ProviderOptions & { readonly preferred: SandboxChoice },
): Promise<Providers> {
  const all = new Map<SandboxKind, SandboxProvider>();
  const seen = new Map<SandboxKind, SandboxProvider>();
  const unusable = new Map<SandboxKind, string>();
  for (const kind of sandboxKinds) {
    const provider = await factories[kind](options);
    if (provider === undefined) {
      if (kind === options.preferred) throw notReady(kind, 'their server is not configured; see the settings');
      continue;
    }
    const { ready, mayComeUp, summary } = await provider.describe();
    if (ready || mayComeUp) all.set(kind, provider);
    else if (kind === options.preferred) throw notReady(kind, summary);
    else unusable.set(kind, summary);
    if (ready) seen.set(kind, provider);
  }
  const findReady = async (): Promise<ReadonlyMap<SandboxKind, SandboxProvider>> => {
    for (const [kind, provider] of all) {
      if (!seen.has(kind) && (await provider.describe()).ready) seen.set(kind, provider);
    }
    return new Map(seen);
  };
  return {
    all,
    unusable,
    seen: findReady,
    ready: async (kind) => {
      const provider = all.get(kind);
      const { ready, summary } = (await provider?.describe()) ?? {
        ready: false,
        summary: 'this host does not offer them',
      };
      if (provider !== undefined && ready) return provider;
      throw notReady(kind, summary);
    },
    choose: async (choice, task, needs) =>
      providerFor(await findReady(), choice === 'auto' ? options.preferred : choice, task, needs),
  };
}

/** Returns the provider for a choice and a task. Throws a failure that names the task and what each kind lacks. */
export const providerFor = (
  providers: ReadonlyMap<SandboxKind, SandboxProvider>,
  choice: SandboxChoice,
  task: PlacedTask,
  needs: RolloutNeeds,
): Promise<SandboxProvider> =>
  chooseProvider(providers, choice, {
    task: task.id,
    image: task.image,
    imageFrom: task.imageFrom ?? 'host',
    paths: [task.workdir, ...fixedPaths],
    ...(task.gpus !== undefined && { gpus: task.gpus }),
    ...(task.gpuTypes !== undefined && { gpuTypes: task.gpuTypes }),
    ...inMemoryOf(task),
    ...(task.hosts !== undefined && { hosts: task.hosts.map(({ name }) => name) }),
    root: task.user === 'root',
    services: (task.services ?? []).map(({ name }) => name),
    ...needs,
  });

/**
 * Returns the named kind, or for `auto` the first that supports the task. Throws the reason of each kind that does not, the
 * preferred one first.
 */
export async function chooseProvider(
  providers: ReadonlyMap<SandboxKind, SandboxProvider>,
  choice: SandboxChoice,
  needs: SandboxNeeds,
): Promise<SandboxProvider> {
  const problems: (UnsupportedReason | ReturnType<typeof unready>)[] = [];
  for (const kind of choice === 'auto' ? kindsOfAuto : [choice]) {
    const provider = providers.get(kind);
    const refusal =
      provider &&
      (refusedRoot(provider, needs) ??
        refusedGpus(provider, needs) ??
        refusedServices(provider, needs) ??
        refusedInMemory(provider, needs) ??
        refusedHosts(provider, needs) ??
        refusedLifetime(provider, needs) ??
        (await provider.supports(needs)));
    if (provider !== undefined && refusal === undefined) return provider;
    problems.push(refusal ?? unready(kind, `no such sandboxes on this host, for task ${needs.task}`));
  }
  const type = problems[0]?.type ?? 'SandboxUnavailable';
  throw new SandboxFailure(type, problems.map(({ message }) => message).join('; '));
}

/** Returns the reason if the task's agent is to be root, and the provider's sandboxes have no such root. */
function refusedRoot(
  { kind, givesRoot }: SandboxProvider,
  { task, root }: SandboxNeeds,
): UnsupportedReason | undefined {
  if (!root || givesRoot) return undefined;
  const message = `the agent of task ${task} is to be root of its container (user = "root"), and ${kind} sandboxes have accounts without rights only; use Docker or Kubernetes`;
  return { type: 'UnsupportedTask', message };
}

/** Returns the reason if the task needs GPUs, and the provider's sandboxes have none. */
function refusedGpus(
  { kind, givesGpus }: SandboxProvider,
  { task, gpus = 0 }: SandboxNeeds,
): UnsupportedReason | undefined {
  if (gpus === 0 || givesGpus) return undefined;
  const message = `task ${task} needs GPUs (environment.gpus = ${gpus}), which ${kind} sandboxes do not have; use a host with Docker and GPUs`;
  return { type: 'UnsupportedTask', message };
}

/** Returns the reason if the task has services, and the provider's sandboxes have nothing beside them. */
function refusedServices(
  { kind, runsServices }: SandboxProvider,
  { task, services = [] }: SandboxNeeds,
): UnsupportedReason | undefined {
  if (services.length === 0 || runsServices) return undefined;
  const message = `task ${task} has services beside its container (${services.join(', ')}), which ${kind} sandboxes cannot run; use a host with Docker`;
  return { type: 'UnsupportedTask', message };
}

/** Returns what a task's sandbox has in memory, in words. */
function inMemoryOf({ sharedMemoryMb, tmpfs = [] }: PlacedTask): Pick<SandboxNeeds, 'inMemory'> {
  const shared = sharedMemoryMb === undefined ? [] : [`/dev/shm of ${sharedMemoryMb} MB`];
  const all = [...shared, ...tmpfs.map(({ path }) => path)];
  return all.length === 0 ? {} : { inMemory: all.join(', ') };
}

/** Returns the reason if the task keeps files in memory, and the provider's sandboxes have no place for them. */
function refusedInMemory(
  { kind, givesTmpfs }: SandboxProvider,
  { task, inMemory }: SandboxNeeds,
): UnsupportedReason | undefined {
  if (inMemory === undefined || givesTmpfs) return undefined;
  const message = `task ${task} has directories in memory (${inMemory}), which ${kind} sandboxes do not have; use Docker or Kubernetes`;
  return { type: 'UnsupportedTask', message };
}

/** Returns the reason if the task names hosts, and the provider's sandboxes cannot know them. */
function refusedHosts(
  { kind, givesHosts }: SandboxProvider,
  { task, hosts = [] }: SandboxNeeds,
): UnsupportedReason | undefined {
  if (hosts.length === 0 || givesHosts) return undefined;
  const message = `task ${task} names hosts (${hosts.join(', ')}), which ${kind} sandboxes cannot know; use a host with Docker`;
  return { type: 'UnsupportedTask', message };
}

/** Returns the reason if the provider would end the sandbox before its rollout has. */
function refusedLifetime(
  { kind, longestLifetimeMs = Number.POSITIVE_INFINITY }: SandboxProvider,
  { task, lifetimeMs = 0 }: SandboxNeeds,
): UnsupportedReason | undefined {
  if (lifetimeMs <= longestLifetimeMs) return undefined;
  const message =
    `task ${task} needs a sandbox for ${lifetimeMs / 1000} s (agent, tests and 900 s around them), but ${kind} sandboxes live for ` +
    `${longestLifetimeMs / 1000} s at most; lower agentTimeoutSec or evaluationTimeoutSec, or use another sandbox`;
  return { type: 'UnsupportedTask', message };
}

const unready = (kind: SandboxKind, reason: string) => ({
  type: 'SandboxUnavailable' as const,
  message: `${kind} sandboxes are not ready on this host: ${reason}`,
});

function notReady(kind: SandboxKind, reason: string): SandboxFailure {
  const { type, message } = unready(kind, reason);
  return new SandboxFailure(type, message);
}

/** Whether a host has an image, or needs none for any kind of its sandboxes. An engine that does not answer has none. */
export async function hasImage(kinds: ReadonlyMap<SandboxKind, SandboxProvider>, image: string): Promise<boolean> {
  const needy = [...kinds.values()].filter(({ programs }) => programs === 'image');
  if (needy.length === 0) return true;
  for (const provider of needy) {
    const found = await provider.imageId(image).then(
      () => true,
      () => false,
    );
    if (found) return true;
  }
  return false;
}

/**
 * Removes the sandbox of a name from every kind that this host offers, and returns whether there was one. An unreachable
 * engine does not block the other kinds; its failure is thrown at the end.
 */
export async function removeEverywhere(providers: Pick<Providers, 'seen'>, name: string): Promise<boolean> {
  let removed = false;
  const kinds = await providers.seen();
  await attemptAll(kinds.values(), `sandbox ${name} to be removed`, async (provider) => {
    removed = (await provider.remove(name)) || removed;
  });
  return removed;
}

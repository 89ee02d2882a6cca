import type { Spawner } from '../process/spawner/spawner.ts';
import type { LimitReport } from './docker/dropped-limits.ts';
import type { OpenBuildProxy } from './docker/images/build-network.ts';
import { createRegistryAccounts, type RegistryAccountsOptions } from './docker/images/registry-accounts.ts';
import { createImageUses } from './docker/images/uses.ts';
import { createDockerProvider } from './docker/provider.ts';
import type { DockerSettings } from './docker/settings.ts';
import type { E2bSettings } from './e2b/settings.ts';
import type { KubernetesOptions } from './kubernetes/settings.ts';
import { createLocalProvider } from './local/provider.ts';
import type { SandboxKind, SandboxProvider } from './sandbox.ts';

export interface ProviderOptions {
  readonly stack: string;
  readonly docker?: Partial<DockerSettings & LimitReport>;
  /** The namespace of a cluster; absent or null: this host has no such sandboxes. */
  readonly kubernetes?: KubernetesOptions | null;
  /** Returns the fencing token that this host holds. Default: it has none. */
  readonly fence?: () => string | null;
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

/** Creates a kind of sandbox; undefined if it is not configured. */
export const createProvider = async (kind: SandboxKind, options: ProviderOptions): Promise<Opened> =>
  factories[kind](options);

/** The kinds by name. A factory loads no library of a kind that is not configured. */
const factories: Readonly<Record<SandboxKind, (options: ProviderOptions) => Opened | Promise<Opened>>> = {
  docker: ({ stack, docker, images, accounts, buildProxy }) =>
    createDockerProvider({
      stack,
      ...docker,
      ...(buildProxy !== undefined && { buildProxy }),
      ...(images !== undefined && { uses: createImageUses(images) }),
      ...(accounts !== undefined && { accounts: createRegistryAccounts(accounts) }),
    }),
  kubernetes: async ({ stack, kubernetes, fence }) => {
    if (!kubernetes) return undefined;
    const { createKubernetesProvider } = await import('./kubernetes/provider.ts');
    return createKubernetesProvider({ stack, ...kubernetes, ...(fence && { fence }) });
  },
  local: ({ stack, root, spawner }) => createLocalProvider({ stack, root, ...(spawner && { spawner }) }),
  e2b: async ({ stack, e2b }) => {
    if (!e2b) return undefined;
    const { createE2bProvider } = await import('./e2b/provider.ts');
    return createE2bProvider({ stack, ...e2b });
  },
};

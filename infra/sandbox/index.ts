/** The kinds of sandbox that this machine offers, and which of them a task gets. */
import type { SandboxChoice } from '../../workflows/contracts/rollout.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { type AccountsOptions, createAccounts } from './docker/images/accounts.ts';
import { createImageUses } from './docker/images/uses.ts';
import type { DockerLimits } from './docker/limits.ts';
import { createDockerProvider } from './docker/provider.ts';
import { SandboxFailure } from './failure.ts';
import { createLocalProvider } from './local/provider.ts';
import type { SandboxKind, SandboxNeeds, SandboxProvider, SandboxRefusal } from './sandbox.ts';

export interface ProviderOptions {
  readonly stack: string;
  readonly docker?: Partial<DockerLimits>;
  /** Where it is kept which images temper brought; default: nowhere, and none is removed. */
  readonly images?: string;
  /** Where this user's accounts at registries are; default: images are pulled as nobody. */
  readonly accounts?: AccountsOptions;
  /** Where local sandboxes lie. */
  readonly root: string;
}

const factories: Readonly<Record<SandboxKind, (options: ProviderOptions) => SandboxProvider>> = {
  docker: ({ stack, docker, images, accounts }) =>
    createDockerProvider({
      ...{ stack, ...docker },
      ...(images !== undefined && { uses: createImageUses(images) }),
      ...(accounts !== undefined && { accounts: createAccounts(accounts) }),
    }),
  local: ({ stack, root }) => createLocalProvider({ stack, root }),
};

/** In this order `auto` looks for a kind that takes the task. */
const preference: readonly SandboxKind[] = ['docker', 'local'];

export interface Providers {
  /**
   * Every kind that this host has, or could have once its engine comes up. For whoever knows of a sandbox there: an engine
   * that is away says so itself, and is no proof that the sandbox is gone.
   */
  readonly all: ReadonlyMap<SandboxKind, SandboxProvider>;
  /** Those that were ready once since they were opened, whatever they are now. The others are asked again at each call. */
  seen(): Promise<ReadonlyMap<SandboxKind, SandboxProvider>>;
  /** A kind that is ready now; the failure says why it is not. */
  ready(kind: SandboxKind): Promise<SandboxProvider>;
  /** The provider for a choice and a task, of those that were seen; a refusal names the task and what it lacks. */
  choose(
    choice: SandboxChoice,
    task: Pick<Task, 'id' | 'image' | 'imageFrom' | 'workdir'>,
    files: Pick<SandboxNeeds, 'filesInImage'>,
  ): Promise<SandboxProvider>;
}

/** Harbor's layout: tests are written for these very paths. */
const fixedPaths = ['/tests', '/logs/verifier'];

/**
 * Opens what this host has. A preferred kind that can't work here fails now, not at the first rollout; one whose engine is
 * only away is waited for by those that need it.
 */
export async function openProviders(
  options: ProviderOptions & { readonly preferred: SandboxChoice },
): Promise<Providers> {
  const all = new Map<SandboxKind, SandboxProvider>();
  const seen = new Map<SandboxKind, SandboxProvider>();
  for (const kind of preference) {
    const provider = factories[kind](options);
    const { ready, mayComeUp, summary } = await provider.describe();
    if (ready || mayComeUp) all.set(kind, provider);
    else if (kind === options.preferred) throw notReady(kind, summary);
    if (ready) seen.set(kind, provider);
  }
  const look = async (): Promise<ReadonlyMap<SandboxKind, SandboxProvider>> => {
    for (const [kind, provider] of all) {
      if (!seen.has(kind) && (await provider.describe()).ready) seen.set(kind, provider);
    }
    return new Map(seen);
  };
  return {
    all,
    seen: look,
    ready: async (kind) => {
      const provider = all.get(kind);
      const { ready, summary } = (await provider?.describe()) ?? { ready: false, summary: 'no way to make them' };
      if (provider !== undefined && ready) return provider;
      throw notReady(kind, summary);
    },
    choose: async (choice, task, { filesInImage }) => {
      const asked = choice === 'auto' ? options.preferred : choice;
      return chooseProvider(await look(), asked, {
        task: task.id,
        image: task.image,
        imageFrom: task.imageFrom ?? 'host',
        paths: [task.workdir, ...fixedPaths],
        filesInImage,
      });
    },
  };
}

/** The named kind, or for `auto` the first that takes the task. What is thrown says why none does, the preferred one first. */
export async function chooseProvider(
  providers: ReadonlyMap<SandboxKind, SandboxProvider>,
  choice: SandboxChoice,
  needs: SandboxNeeds,
): Promise<SandboxProvider> {
  const problems: (SandboxRefusal | ReturnType<typeof unready>)[] = [];
  for (const kind of choice === 'auto' ? preference : [choice]) {
    const provider = providers.get(kind);
    const refusal = await provider?.supports(needs);
    if (provider !== undefined && refusal === undefined) return provider;
    problems.push(refusal ?? unready(kind, `nothing on this host that would take task ${needs.task}`));
  }
  const type = problems[0]?.type ?? 'SandboxUnavailable';
  throw new SandboxFailure(type, problems.map(({ message }) => message).join('; '));
}

const unready = (kind: SandboxKind, got: string) => ({
  type: 'SandboxUnavailable' as const,
  message: `expected ${kind} sandboxes to be ready here, got: ${got}`,
});

function notReady(kind: SandboxKind, got: string): SandboxFailure {
  const { type, message } = unready(kind, got);
  return new SandboxFailure(type, message);
}

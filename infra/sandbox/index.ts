/** The kinds of sandbox that this machine offers, and which of them a task gets. */
import type { Task } from '../../workflows/contracts/task.ts';
import { createDockerProvider } from './docker/provider.ts';
import { SandboxFailure } from './failure.ts';
import { createLocalProvider } from './local/provider.ts';
import type { SandboxKind, SandboxNeeds, SandboxProvider } from './sandbox.ts';

export type SandboxChoice = 'auto' | SandboxKind;

export interface ProviderOptions {
  readonly stack: string;
  /** Where local sandboxes lie. */
  readonly root: string;
}

const factories: Readonly<Record<SandboxKind, (options: ProviderOptions) => SandboxProvider>> = {
  docker: ({ stack }) => createDockerProvider({ stack }),
  local: ({ stack, root }) => createLocalProvider({ stack, root }),
};

/** In this order `auto` looks for a kind that takes the task. */
const preference: readonly SandboxKind[] = ['docker', 'local'];

export interface Providers {
  /** Those that are ready here. */
  readonly providers: ReadonlyMap<SandboxKind, SandboxProvider>;
  /** The provider for a choice and a task; a refusal names the task and what it lacks. */
  choose(choice: SandboxChoice, task: Pick<Task, 'id' | 'image' | 'workdir'>): Promise<SandboxProvider>;
}

/** Harbor's layout: tests are written for these very paths. */
const fixedPaths = ['/tests', '/logs/verifier'];

/** Opens what is ready. A preferred kind that is not ready fails here, not at the first rollout. */
export async function openProviders(
  options: ProviderOptions & { readonly preferred: SandboxChoice },
): Promise<Providers> {
  const providers = new Map<SandboxKind, SandboxProvider>();
  for (const kind of preference) {
    const provider = factories[kind](options);
    const { ready, summary } = await provider.describe();
    if (ready) providers.set(kind, provider);
    else if (kind === options.preferred) throw unready(kind, summary);
  }
  return {
    providers,
    choose: (choice, task) => {
      const asked = choice === 'auto' ? options.preferred : choice;
      return chooseProvider(providers, asked, {
        task: task.id,
        image: task.image,
        paths: [task.workdir, ...fixedPaths],
      });
    },
  };
}

/** The named kind, or for `auto` the first that takes the task. */
export async function chooseProvider(
  providers: ReadonlyMap<SandboxKind, SandboxProvider>,
  choice: SandboxChoice,
  needs: SandboxNeeds,
): Promise<SandboxProvider> {
  const kinds = choice === 'auto' ? preference.filter((kind) => providers.has(kind)) : [choice];
  let refused: SandboxFailure | undefined;
  for (const kind of kinds) {
    const provider = providers.get(kind);
    if (!provider) throw unready(kind, `nothing on this host that would take task ${needs.task}`);
    const refusal = await provider.supports(needs);
    if (!refusal) return provider;
    refused ??= new SandboxFailure(refusal.type, refusal.message);
  }
  throw refused ?? unready('local', `no kind of sandbox that would take task ${needs.task}`);
}

function unready(kind: SandboxKind, got: string): SandboxFailure {
  return new SandboxFailure('SandboxUnavailable', `expected ${kind} sandboxes to be ready here, got: ${got}`);
}

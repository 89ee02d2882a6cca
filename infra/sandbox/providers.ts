import { type SandboxChoice, sandboxKinds } from '../../workflows/contracts/sandbox-kinds.ts';
import { attemptAll } from '../attempt-all.ts';
import { providerFor, unready } from './choose-provider.ts';
import { SandboxFailure } from './failure.ts';
import { createProvider, type ProviderOptions } from './index.ts';
import type { PlacedTask, RolloutNeeds } from './needs.ts';
import type { SandboxKind, SandboxProvider } from './sandbox.ts';
import { type ProviderWatch, watchProvider } from './watch-provider.ts';

type Kinds = ReadonlyMap<SandboxKind, SandboxProvider>;

/** The kinds of sandbox of this host. */
export interface Providers {
  /**
   * Every kind that this host has, or may have once its container engine is up. Use it to find an existing sandbox: an unreachable
   * engine throws, and does not prove that the sandbox is gone.
   */
  readonly all: Kinds;
  /** The kinds that can't work on this host, with the reason. A kind that is not configured is not among them. */
  readonly unusable: ReadonlyMap<SandboxKind, string>;
  /** Returns the kinds that have been ready at least once. The others are checked again at each call. */
  seen(): Promise<Kinds>;
  /** Returns a kind that is ready now. Throws SandboxUnavailable with the reason if it is not. */
  ready(kind: SandboxKind): Promise<SandboxProvider>;
  /** Returns the provider for a choice and a task, among those seen. Throws a failure that names the task and what it lacks. */
  choose(choice: SandboxChoice, task: PlacedTask, needs: RolloutNeeds): Promise<SandboxProvider>;
}

/**
 * Opens the kinds of sandbox that this host offers. Throws if the preferred kind can't work here, rather than at the first
 * rollout. A kind whose engine is only unreachable is kept, and checked again when it is needed.
 */
export async function openProviders(
  options: ProviderOptions & {
    readonly preferred: SandboxChoice;
    /** Learns of a kind that fails, and that it works again. Default: none is watched. */
    readonly onFailing?: (watch: ProviderWatch) => void;
  },
): Promise<Providers> {
  const { preferred, onFailing } = options;
  const all = new Map<SandboxKind, SandboxProvider>();
  const seen = new Map<SandboxKind, SandboxProvider>();
  const unusable = new Map<SandboxKind, string>();
  const notYet = new Map<SandboxKind, string>();
  for (const kind of sandboxKinds) {
    const created = await createProvider(kind, options);
    const provider = created && onFailing ? watchProvider(created, { onChange: onFailing }) : created;
    if (provider === undefined) {
      if (kind === preferred) throw notReady(kind, 'their server is not configured; see the settings');
      continue;
    }
    const { ready, mayComeUp, summary } = await provider.describe();
    if (ready || mayComeUp) all.set(kind, provider);
    else if (kind === preferred) throw notReady(kind, summary);
    else unusable.set(kind, summary);
    if (ready) seen.set(kind, provider);
    else notYet.set(kind, summary);
  }
  const lookAgain = async (): Promise<Kinds> => {
    for (const [kind, provider] of all) {
      if (seen.has(kind)) continue;
      const { ready, summary } = await provider.describe();
      if (ready) seen.set(kind, provider);
      else notYet.set(kind, summary);
    }
    return new Map(seen);
  };
  return {
    all,
    unusable,
    seen: lookAgain,
    ready: (kind) => requireReady(all.get(kind), kind),
    choose: async (choice, task, needs) =>
      providerFor(await lookAgain(), choice === 'auto' ? preferred : choice, task, { ...needs, why: notYet }),
  };
}

async function requireReady(provider: SandboxProvider | undefined, kind: SandboxKind): Promise<SandboxProvider> {
  if (provider === undefined) throw notReady(kind, 'this host does not offer them');
  const { ready, summary } = await provider.describe();
  if (ready) return provider;
  throw notReady(kind, summary);
}

function notReady(kind: SandboxKind, reason: string): SandboxFailure {
  const { type, message } = unready(kind, reason);
  return new SandboxFailure(type, message);
}

/** Whether a host has an image, or needs none for any kind of its sandboxes. An engine that does not answer has none. */
export async function hasImage(kinds: Kinds, image: string): Promise<boolean> {
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

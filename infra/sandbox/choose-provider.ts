import { kindsOfAuto, type SandboxChoice } from '../../workflows/contracts/sandbox-kinds.ts';
import { SandboxFailure } from './failure.ts';
import { needsOf, type PlacedTask, type RolloutNeeds } from './needs.ts';
import type { SandboxKind, SandboxNeeds, SandboxProvider, UnsupportedReason } from './sandbox.ts';
import { unmetNeed } from './unmet-need.ts';

/** Returns the provider for a choice and a task. Throws a failure that names the task and what each kind lacks. */
export const providerFor = (
  providers: ReadonlyMap<SandboxKind, SandboxProvider>,
  choice: SandboxChoice,
  task: PlacedTask,
  { why, ...needs }: RolloutNeeds & { readonly why?: Reasons },
): Promise<SandboxProvider> => chooseProvider(providers, choice, needsOf(task, needs), why);

/** The reasons why kinds of sandbox cannot be used on this host now. */
type Reasons = ReadonlyMap<SandboxKind, string>;

/**
 * Returns the named kind, or for `auto` the first that supports the task. Throws the reason of each kind that does not, the
 * preferred one first.
 */
export async function chooseProvider(
  providers: ReadonlyMap<SandboxKind, SandboxProvider>,
  choice: SandboxChoice,
  needs: SandboxNeeds,
  why: Reasons = new Map(),
): Promise<SandboxProvider> {
  const problems: Problem[] = [];
  for (const kind of choice === 'auto' ? kindsOfAuto : [choice]) {
    const provider = providers.get(kind);
    const problem = provider
      ? (unmetNeed(provider, needs) ?? (await provider.supports(needs)))
      : unready(kind, `${why.get(kind) ?? 'they are not set up'}, for task ${needs.task}`);
    if (provider && !problem) return provider;
    if (problem) problems.push(problem);
  }
  const type = problems[0]?.type ?? 'SandboxUnavailable';
  throw new SandboxFailure(type, problems.map(({ message }) => message).join('; '));
}

type Problem = UnsupportedReason | ReturnType<typeof unready>;

/** Returns the reason why a kind cannot be used on this host, at least now. */
export const unready = (kind: SandboxKind, reason: string) => ({
  type: 'SandboxUnavailable' as const,
  message: `${kind} sandboxes are not ready on this host: ${reason}`,
});

import { type Flag, type FlagCounts, type Trick, tricks } from '../contracts/flags.ts';
import type { StopReason } from '../contracts/outcome.ts';
import type { RolloutResult } from '../contracts/rollout.ts';
import { isSolved } from './reward.ts';

/** The length to which evidence is shortened, because flags are stored in workflow history. */
const evidenceCharacters = 100;

/** Keeps one flag for each trick, with its first evidence, in the order of the union: a diff can hold any number of them. */
export function firstOfEach(flags: Iterable<Flag>): readonly Flag[] {
  const found = new Map<Trick, Flag>();
  for (const flag of flags) if (!found.has(flag.trick)) found.set(flag.trick, flag);
  return tricks.flatMap((trick) => {
    const flag = found.get(trick);
    return flag === undefined ? [] : [{ trick, evidence: shorten(flag.evidence) }];
  });
}

type Flagged = Pick<RolloutResult, 'diff' | 'verdict' | 'network' | 'stepFlags'> & Partial<Pick<RolloutResult, 'stop'>>;

/** The flags of a rollout, those of all its steps among them. */
export const flagsOfRollout = ({ stepFlags = [], ...work }: Flagged): readonly Flag[] =>
  firstOfEach([...stepFlags, ...flagsOfWork(work)]);

/** The flags of one agent's work, from capturing its diff, from its evaluation, from the agent's network and from its end. */
export const flagsOfWork = ({ diff, verdict, network, stop = null }: Omit<Flagged, 'stepFlags'>): readonly Flag[] => [
  ...(diff?.flags ?? []),
  ...(verdict?.flags ?? []),
  ...(network?.flags ?? []),
  ...flagsOfEnd(stop, verdict),
];

const crashes: readonly (StopReason | null)[] = ['crashed', 'killed'];

const flagsOfEnd = (stop: StopReason | null, verdict: RolloutResult['verdict']): readonly Flag[] =>
  crashes.includes(stop) && verdict !== null && isSolved(verdict)
    ? [{ trick: 'crash', evidence: `the agent ended by ${stop}` }]
    : [];

/** The flagged tricks of a rollout without their evidence, for reports that hold many rollouts. Omitted when there are none. */
export function tricksOfRollout(result: Flagged): {
  readonly flags?: readonly Trick[];
} {
  const flags = flagsOfRollout(result).map(({ trick }) => trick);
  return flags.length === 0 ? {} : { flags };
}

export const noFlags: FlagCounts = { rollouts: 0, tricks: {} };

/** Counts flagged rollouts. The input holds the tricks of each rollout, every trick once. */
export function countFlags(flagsOf: Iterable<readonly Trick[] | undefined>): FlagCounts {
  let rollouts = 0;
  const counts = new Map<Trick, number>();
  for (const flags of flagsOf) {
    if (flags === undefined || flags.length === 0) continue;
    rollouts += 1;
    for (const trick of flags) counts.set(trick, (counts.get(trick) ?? 0) + 1);
  }
  return { rollouts, tricks: inOrder((trick) => counts.get(trick) ?? 0) };
}

export function addFlags(some: FlagCounts, more: FlagCounts): FlagCounts {
  const both = { ...some, ...more };
  return {
    rollouts: some.rollouts + more.rollouts,
    tricks: added(some.tricks, more.tricks),
    ...('excluded' in both && { excluded: added(some.excluded, more.excluded) }),
    ...('zeroed' in both && { zeroed: added(some.zeroed, more.zeroed) }),
  };
}

const added = (some: FlagCounts['tricks'] = {}, more: FlagCounts['tricks'] = {}): FlagCounts['tricks'] =>
  inOrder((trick) => (some[trick] ?? 0) + (more[trick] ?? 0));

/**
 * Formats counts as `12 rollouts: tests 7, plugin 6; left out for plugin 2`, the most frequent first; null when no rollout is
 * flagged.
 */
export function flagsText({ rollouts, tricks: counts, excluded = {}, zeroed = {} }: FlagCounts): string | null {
  if (rollouts === 0) return null;
  const named = (some: FlagCounts['tricks']): string =>
    Object.entries(some)
      .sort(([, a], [, b]) => b - a)
      .map(([trick, count]) => `${trick} ${count}`)
      .join(', ');
  const [left, zero] = [named(excluded), named(zeroed)];
  return [
    `${rollouts} ${rollouts === 1 ? 'rollout' : 'rollouts'}: ${named(counts)}`,
    ...(left === '' ? [] : [`left out for ${left}`]),
    ...(zero === '' ? [] : [`counted as 0 for ${zero}`]),
  ].join('; ');
}

/** Builds counts in the order of the union, without tricks that never occurred. */
function inOrder(countOf: (trick: Trick) => number): FlagCounts['tricks'] {
  return Object.fromEntries(
    tricks.flatMap((trick) => {
      const count = countOf(trick);
      return count === 0 ? [] : [[trick, count]];
    }),
  );
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= evidenceCharacters ? line : `${line.slice(0, evidenceCharacters - 1)}…`;
}

import type { CostSum, Ledger, ModelUse, RolloutCost, SandboxProvider } from '../contracts/cost.ts';
import { type Outcome, outcomes } from '../contracts/outcome.ts';
import type { TraceSummary, Turn } from '../contracts/trace.ts';
import { sampledTokensOf } from './turns.ts';

type Timed = Pick<Turn, 'upstream' | 'sampledIds' | 'promptLength' | 'startedAt' | 'endedAt'>;

/** Sums up the model calls of a session that has waited for so long for its engine. */
export function modelUseOf(turns: readonly Timed[], waitedMs: number): ModelUse {
  return {
    promptTokens: turns.reduce((sum, turn) => sum + turn.promptLength, 0),
    sampledTokens: turns.reduce((sum, turn) => sum + sampledTokensOf(turn), 0),
    engineSeconds: turns.reduce((sum, { startedAt, endedAt }) => sum + Math.max(0, endedAt - startedAt), 0) / 1000,
    waitedSeconds: waitedMs / 1000,
  };
}

/** Returns what the model calls of a sealed session cost, also those that the agent gave up. */
export const useOfTrace = (trace: Pick<TraceSummary, keyof ModelUse | 'counts'>): ModelUse => ({
  promptTokens: trace.promptTokens,
  sampledTokens: trace.sampledTokens + (trace.counts?.cuts?.tokens ?? 0),
  engineSeconds: trace.engineSeconds,
  waitedSeconds: trace.waitedSeconds,
});

const nothing: CostSum = {
  rollouts: 0,
  unknown: 0,
  promptTokens: 0,
  sampledTokens: 0,
  engineSeconds: 0,
  waitedSeconds: 0,
  sandboxSeconds: {},
  evaluationSeconds: 0,
};

/** Adds a rollout to a ledger. One without a cost counts as unknown. */
export function addRollout(ledger: Ledger, outcome: Outcome, cost: RolloutCost | undefined): Ledger {
  const { incomplete, ...known } = cost ?? { ...nothing, incomplete: true };
  return addLedgers(ledger, { [outcome]: { ...known, rollouts: 1, unknown: incomplete === true ? 1 : 0 } });
}

export function addLedgers(some: Ledger, more: Ledger): Ledger {
  return Object.fromEntries(
    outcomes.flatMap((outcome) => {
      const sums = [some[outcome], more[outcome]].filter((sum) => sum !== undefined);
      return sums.length === 0 ? [] : [[outcome, sums.reduce(addSums)]];
    }),
  );
}

/** The ledger of rollouts of which only the outcomes are known. */
export function unknownLedger(counts: Readonly<Record<Outcome, number>>): Ledger {
  return Object.fromEntries(
    outcomes.flatMap((outcome) => {
      const rollouts = counts[outcome];
      return rollouts === 0 ? [] : [[outcome, { ...nothing, rollouts, unknown: rollouts }]];
    }),
  );
}

/** The sum over all outcomes. */
export const totalOf = (ledger: Ledger): CostSum => Object.values(ledger).reduce(addSums, nothing);

/** The seconds in sandboxes of all providers. */
export const sandboxSecondsOf = ({ sandboxSeconds }: Pick<CostSum, 'sandboxSeconds'>): number =>
  Object.values(sandboxSeconds).reduce((sum, seconds) => sum + seconds, 0);

function addSums(some: CostSum, more: CostSum): CostSum {
  const sandboxSeconds: Partial<Record<SandboxProvider, number>> = { ...some.sandboxSeconds };
  for (const provider of Object.keys(more.sandboxSeconds) as SandboxProvider[]) {
    sandboxSeconds[provider] = toMs((sandboxSeconds[provider] ?? 0) + (more.sandboxSeconds[provider] ?? 0));
  }
  return {
    rollouts: some.rollouts + more.rollouts,
    unknown: some.unknown + more.unknown,
    promptTokens: some.promptTokens + more.promptTokens,
    sampledTokens: some.sampledTokens + more.sampledTokens,
    engineSeconds: toMs(some.engineSeconds + more.engineSeconds),
    waitedSeconds: toMs(some.waitedSeconds + more.waitedSeconds),
    sandboxSeconds,
    evaluationSeconds: toMs(some.evaluationSeconds + more.evaluationSeconds),
  };
}

/** Rounds seconds to milliseconds, so that sums stay short in history. */
export const toMs = (seconds: number): number => Math.round(seconds * 1000) / 1000;

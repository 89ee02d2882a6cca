import { toMs } from '../algorithms/cost.ts';
import type { ModelUse, RolloutCost, SandboxProvider } from '../contracts/cost.ts';

/** Adds up what a rollout costs while it runs, over all of its epochs, so that an outcome without a score has its cost, too. */
export interface CostMeter {
  /** Counts the model calls of a session that has ended; null if they are unknown. */
  session(use: ModelUse | null): void;
  /** Counts a sandbox from the time of its provisioning until now. */
  sandbox(provider: SandboxProvider, sinceMs: number): void;
  /** Counts the time that an evaluation ran. */
  evaluation(seconds: number): void;
  read(): RolloutCost;
}

export function createCostMeter(): CostMeter {
  const use = { promptTokens: 0, sampledTokens: 0, engineSeconds: 0, waitedSeconds: 0 };
  const sandboxSeconds: Partial<Record<SandboxProvider, number>> = {};
  let incomplete = false;
  let evaluationSeconds = 0;
  return {
    session(of) {
      incomplete ||= of === null;
      use.promptTokens += of?.promptTokens ?? 0;
      use.sampledTokens += of?.sampledTokens ?? 0;
      use.engineSeconds = toMs(use.engineSeconds + (of?.engineSeconds ?? 0));
      use.waitedSeconds = toMs(use.waitedSeconds + (of?.waitedSeconds ?? 0));
    },
    sandbox(provider, sinceMs) {
      sandboxSeconds[provider] = toMs((sandboxSeconds[provider] ?? 0) + (Date.now() - sinceMs) / 1000);
    },
    evaluation(seconds) {
      evaluationSeconds = toMs(evaluationSeconds + seconds);
    },
    read: () => ({
      ...use,
      sandboxSeconds,
      evaluationSeconds,
      ...(incomplete && { incomplete }),
    }),
  };
}

import { z } from 'zod';
import type { Outcome } from './outcome.ts';
import type { SandboxKind } from './sandbox-kinds.ts';

/** The tokens of model calls, and the time they took. */
export const modelUse = z.object({
  promptTokens: z.number().describe('The sum over all turns of the tokens that each sent to the engine.'),
  sampledTokens: z.number(),
  /** The seconds from the start of each turn to its end, waits for the engine included, summed up. */
  engineSeconds: z.number(),
  /** The seconds in which the agent waited for an engine, and its clock stood still: model calls ran, and none was sampled. */
  waitedSeconds: z.number(),
});
export type ModelUse = Readonly<z.output<typeof modelUse>>;

/** The provider of a sandbox; `unknown` if no sandbox was created and the choice was left to the host. */
export type SandboxProvider = SandboxKind | 'unknown';

/** The cost of one rollout, over all of its epochs. */
export interface RolloutCost extends ModelUse {
  /**
   * The seconds from when a host begins to provision a sandbox until it is released, by provider: without the waits for a place in the
   * host's lane and until a creation is allowed.
   */
  readonly sandboxSeconds: Readonly<Partial<Record<SandboxProvider, number>>>;
  /**
   * The seconds that its evaluations ran in sandboxes of their own, by their own account, attempts that failed included. Waits in a
   * queue are not counted.
   */
  readonly evaluationSeconds: number;
  /** Set if a session was lost with its host or its gateway, so that the tokens are a lower bound. */
  readonly incomplete?: true;
}

/** The cost of several rollouts. */
export interface CostSum extends Omit<RolloutCost, 'incomplete'> {
  readonly rollouts: number;
  /** The number of rollouts whose cost is unknown, in whole or in part: the sums are lower bounds. */
  readonly unknown: number;
}

/** The cost of rollouts, by their outcome. */
export type Ledger = Readonly<Partial<Record<Outcome, CostSum>>>;

/** The cost of a run so far. */
export interface RunCost {
  readonly rollouts: Ledger;
  /** The seconds in which the trainer prepared the model and made steps, failed ones too. */
  readonly trainerSeconds: number;
}

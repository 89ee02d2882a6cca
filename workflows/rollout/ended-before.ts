import type { RolloutResult } from '../contracts/rollout.ts';

/** Ends a rollout that has a record already, since Temporal's database was restored to before its end: its work is not repeated. */
export class EndedBefore extends Error {
  readonly result: RolloutResult;

  constructor(result: RolloutResult) {
    super('the rollout has ended before');
    this.result = result;
  }
}

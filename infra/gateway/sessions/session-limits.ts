import { sampledTokensOf } from '../../../workflows/algorithms/turns.ts';
import type { CutRequests } from '../../../workflows/contracts/trace.ts';
import type { TurnRecord } from '../branches/turn-record.ts';
import type { OpenSession } from '../control.ts';
import { GatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';
import { askedTokens, type ModelRequest } from '../model-call.ts';

/** The model calls of a session so far. */
interface Begun {
  readonly turns: readonly TurnRecord[];
  readonly running: number;
  /** The cut ones that count. */
  readonly cuts: CutRequests;
}

/** Returns the error of a session that may begin no turn; null if it may. */
export function limitReached(
  { maxTurns, maxSampledTokens = Number.POSITIVE_INFINITY }: Pick<OpenSession, 'maxTurns' | 'maxSampledTokens'>,
  { turns, running, cuts }: Begun,
): GatewayError | null {
  if (turns.length + running + cuts.requests >= maxTurns) {
    return new GatewayError('turn-limit', `the limit of ${maxTurns} model calls is reached; stop`);
  }
  const limited = Number.isFinite(maxSampledTokens);
  if (limited && turns.reduce((sum, turn) => sum + sampledTokensOf(turn), cuts.tokens) >= maxSampledTokens) {
    return new GatewayError('token-budget', `the budget of ${maxSampledTokens} sampled tokens is used up; stop`);
  }
  if (running < limits.turnsAtOnce) return null;
  return new GatewayError('too-many-turns', `${running} model calls are running at once; wait for one to end`);
}

/** Whether a request asks for more tokens than a reply that was cut at its limit: then it is not a retry. */
export function wantsMore(request: ModelRequest, answered: TurnRecord, sampling: OpenSession['sampling']): boolean {
  if (answered.finishReason !== 'length' || answered.cutShort === true) return false;
  return askedTokens(request, sampling) > sampledTokensOf(answered);
}

/** Returns a function that says whether a time is over. It counts by a clock that does not jump, from the wall clock's time now. */
export function createExpiry(expiresAt: number): () => boolean {
  const expiresAtMs = performance.now() + expiresAt - Date.now();
  return () => performance.now() >= expiresAtMs;
}

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withTimeLimit } from '../../infra/time-limit.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

const late = new TemperFailure('EvaluationTimedOut', 'the evaluation took too long');
const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

describe('a time limit', () => {
  it('returns the result of an effect that ends in time', async (t) => {
    assert.equal(await withTimeLimit({ limitMs: 60_000, late }, async () => 'done', t.signal), 'done');
  });

  it('aborts an effect that takes too long, and throws the given failure', async (t) => {
    let ending: AbortSignal | undefined;
    const effect = (signal: AbortSignal): Promise<never> => {
      ending = signal;
      return never(signal);
    };
    await assert.rejects(withTimeLimit({ limitMs: 1, late }, effect, t.signal), { type: 'EvaluationTimedOut' });
    assert.equal(ending?.aborted, true);
  });

  it('does not wait for an effect that ignores its signal', async (t) => {
    const stuck = (): Promise<never> => new Promise(() => undefined);
    await assert.rejects(withTimeLimit({ limitMs: 1, late }, stuck, t.signal), late);
  });

  it("throws the caller's reason when the caller aborts first", async () => {
    const caller = new AbortController();
    const running = withTimeLimit({ limitMs: 60_000, late }, never, caller.signal);
    caller.abort(new Error('cancelled'));
    await assert.rejects(running, /cancelled/);
  });
});

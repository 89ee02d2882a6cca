import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { skewOfServer } from '../../workers/check-clocks.ts';

const minutes = 60_000;

/** A server whose clock is ahead of this one, and that has seen this process poll from the second question on. */
function serverAhead(aheadMs: number): () => Promise<number | null> {
  let asked = 0;
  return async () => {
    asked += 1;
    return asked === 1 ? null : Math.floor((Date.now() + aheadMs) / 1000) * 1000;
  };
}

describe('the clock of a Temporal server', () => {
  for (const [what, aheadMs] of [
    ['ahead', 6 * minutes],
    ['behind', -6 * minutes],
    ['right', 0],
  ] as const) {
    it(`is found ${what} by the first poll of this process`, async (t) => {
      const skewMs = (await skewOfServer(serverAhead(aheadMs), t.signal)) ?? Number.NaN;
      assert.ok(Math.abs(skewMs - aheadMs) < minutes, String(skewMs));
    });
  }

  it('is not judged by a poll of an earlier process of the same number', async (t) => {
    const polls = [Date.now() - 4 * minutes, Date.now() - 4 * minutes, Date.now()];
    const skewMs = await skewOfServer(async () => polls.shift() ?? null, t.signal);
    assert.ok(skewMs !== null && Math.abs(skewMs) < minutes, String(skewMs));
  });
});

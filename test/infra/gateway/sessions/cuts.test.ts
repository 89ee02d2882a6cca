import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { TurnRecord } from '../../../../infra/gateway/branches/turn-record.ts';
import { limits } from '../../../../infra/gateway/limits.ts';
import { createCuts } from '../../../../infra/gateway/sessions/cuts.ts';
import { limitReached } from '../../../../infra/gateway/sessions/session-limits.ts';

/** A cut turn of a request of its own, with two tokens. */
const cutTurn = (at: number): TurnRecord =>
  ({ requestKey: `key-${at}`, sampledIds: [65, 66], startedAt: at, endedAt: at + 1 }) as unknown as TurnRecord;

function cutsOf(append: () => Promise<void>) {
  const lost: unknown[] = [];
  const onUnwritten = (error: unknown): void => void lost.push(error);
  const cuts = createCuts({ journal: { append }, turns: () => [], isAnswered: () => false, onUnwritten });
  return { cuts, lost };
}

it('requests that an agent gives up count towards its limits once they are more than a few', () => {
  const { cuts } = cutsOf(async () => {});
  const reached = () =>
    limitReached({ maxTurns: 5, maxSampledTokens: 8 }, { turns: [], running: 0, cuts: cuts.excess })?.kind ?? null;
  for (let at = 0; at < limits.freeCuts; at += 1) cuts.add(cutTurn(at));
  assert.deepEqual([cuts.excess, reached()], [{ requests: 0, tokens: 0 }, null]);
  for (let at = 0; at < 4; at += 1) cuts.add(cutTurn(limits.freeCuts + at));
  assert.deepEqual([cuts.excess, reached()], [{ requests: 4, tokens: 8 }, 'token-budget']);
  cuts.add(cutTurn(limits.freeCuts + 4));
  assert.equal(reached(), 'turn-limit');
  // A request that is given up over and over is one turn of the trace.
  for (let at = 0; at < 10; at += 1) cuts.add(cutTurn(0));
  assert.deepEqual(cuts.replaced, { requests: 10, tokens: 20 });
  assert.equal(cuts.last.length, limits.freeCuts + 5);
});

it('a cut turn that cannot be written is reported, and counts', async () => {
  const full = new Error('no space left on device');
  const { cuts, lost } = cutsOf(() => Promise.reject(full));
  cuts.add(cutTurn(0));
  await cuts.written();
  assert.deepEqual([lost, cuts.last.length], [[full], 1]);
});

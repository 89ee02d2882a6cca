import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createKnownRuns, type KnownRun } from '../../../../infra/grading/evidence/known-runs.ts';

const never = new AbortController().signal;
const failed: KnownRun = { isSolved: false, reward: 0, cutBy: null, evidence: [] };
const solved: KnownRun = { isSolved: true, reward: 1, cutBy: null, evidence: [] };

describe("runs of the tests without an agent's work", () => {
  it('are made once for all that ask together, and again after a while unless they are solved', async () => {
    let nowMs = 0;
    let made = 0;
    const known = createKnownRuns(() => nowMs);
    const run = async (): Promise<KnownRun> => {
      made += 1;
      return failed;
    };
    const all = await Promise.all(Array.from({ length: 1000 }, () => known.get('a', run, never)));
    assert.ok(all.every((one) => one === failed));
    assert.equal(made, 1);
    nowMs += 11 * 60_000;
    await known.get('a', run, never);
    assert.equal(made, 2);
    nowMs += 11 * 60_000;
    await known.get('a', async () => solved, never);
    nowMs += 24 * 3_600_000;
    assert.equal(await known.get('a', run, never), solved);
  });

  it('fail for all that wait, and are not kept then', async () => {
    const known = createKnownRuns();
    const run = () => Promise.reject(new Error('no daemon'));
    const both = await Promise.allSettled([known.get('a', run, never), known.get('a', run, never)]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await known.get('a', async () => solved, never), solved);
  });

  it('are made by another that waits if the one that made them is cancelled, and let go of one that is cancelled itself', async () => {
    const known = createKnownRuns();
    const [first, third] = [new AbortController(), new AbortController()];
    const aborted = new Promise<KnownRun>((_, reject) =>
      first.signal.addEventListener('abort', () => reject(new Error('cancelled'))),
    );
    const one = known.get('a', () => aborted, first.signal);
    const two = known.get('a', async () => failed, never);
    const three = known.get('a', async () => failed, third.signal);
    third.abort(new Error('mine'));
    await assert.rejects(three, /mine/);
    first.abort(new Error('cancelled'));
    await assert.rejects(one, /cancelled/);
    assert.equal(await two, failed);
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createWarmUpData } from '../../activities/trainer/warm-up-data.ts';
import type { Store } from '../../infra/store/store.ts';

const segment = (tokens: readonly number[], mask: readonly number[]) => ({ tokens, mask });
const blank = { session: 's', turns: [], transcript: [], segments: [], branches: [], counts: {}, maskedTurns: [] };
const turn = { index: 0, parent: null, promptIds: [], promptLength: 0, sampledIds: [], logprobs: [] };
const traces: Record<string, object> = {
  a: { ...blank, segments: [segment([1, 2, 3, 4], [0, 0, 1, 1]), segment([1, 2], [0, 0])] },
  b: { ...blank, segments: [segment([1, 5, 6], [0, 1, 1])] },
  upstream: {
    ...blank,
    session: 'rollout-7',
    turns: [{ ...turn, upstream: { model: 'large-2', sampledTokens: 9 } }],
  },
  none: blank,
};
const reads: string[] = [];
const store: Pick<Store, 'getJson'> = {
  getJson: async (digest) => {
    reads.push(digest);
    return traces[digest];
  },
};
const request = { tasks: '', agent: 'pi', seed: 1, count: 3, rightShare: 0 };

it('repeats recorded traces in the order given, with the same weight for each trained token', async () => {
  const demonstrations = createWarmUpData('/nonexistent', store);
  const first = await demonstrations({ ...request, step: 0, traces: ['a', 'b'] });
  assert.deepEqual(
    first.map(({ tokens, targets }) => [tokens, targets]),
    [
      [
        [1, 2, 3],
        [2, 3, 4],
      ],
      [
        [1, 5],
        [5, 6],
      ],
      [
        [1, 2, 3],
        [2, 3, 4],
      ],
    ],
  );
  assert.deepEqual(first[0]?.weights, [0, 1 / 6, 1 / 6]);
  const second = await demonstrations({ ...request, step: 1, traces: ['a', 'b'] });
  assert.deepEqual(second[0]?.tokens, [1, 5]);
  assert.deepEqual(reads, ['a', 'b'], 'traces are read once for all steps');
});

it('refuses traces without tokens of a policy', async () => {
  const none = createWarmUpData('/nonexistent', store)({ ...request, step: 0, traces: ['none'] });
  await assert.rejects(none, { type: 'InvalidInput', message: /warmUp\.traces: expected traces with tokens/ });
});

it('refuses a trace of an upstream model by its name, also among valid traces', async () => {
  const mixed = createWarmUpData('/nonexistent', store)({ ...request, step: 0, traces: ['b', 'upstream'] });
  await assert.rejects(mixed, {
    type: 'InvalidInput',
    message: /expected traces of the policy, got the trace of rollout-7, which the upstream model large-2/,
  });
});

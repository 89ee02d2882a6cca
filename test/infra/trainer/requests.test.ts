import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { applyUpdate } from '../../../activities/trainer/model.ts';
import { forwardBackwardInParts, requestSizes } from '../../../infra/trainer/requests.ts';
import type { Datum, Trainer } from '../../../infra/trainer/trainer.ts';
import { training } from '../../../workflows/contracts/run.ts';
import { startTestPolicy } from '../kits/embedded-policy/server/policy-server.ts';

const ofLength = (length: number): Datum => ({ tokens: Array(length).fill(5), targets: [], weights: [] });
const never = new AbortController().signal;

it('a request takes as many datums as fit, padded to the longest, in order, and a long one is sent alone', () => {
  const sizes = (lengths: readonly number[], maxTokens: number) => requestSizes(lengths.map(ofLength), maxTokens);
  assert.deepEqual(sizes([10, 10, 10], 30), [3]);
  assert.deepEqual(sizes([10, 10, 10], 29), [2, 1]);
  assert.deepEqual(sizes([2, 2, 10, 2], 20), [2, 2]);
  assert.deepEqual(sizes([2, 50, 2], 20), [1, 1, 1]);
  assert.deepEqual(sizes([], 20), []);
});

it('metrics of several requests are merged by the suffix of their names', async () => {
  const answers = [
    { 'a:sum': 1, 'b:max': 5, 'c:min': 5, 'd:mean': 1, once: 2 },
    { 'a:sum': 2, 'b:max': 3, 'c:min': 3, 'd:mean': 4 },
  ];
  const asked: number[] = [];
  const forwardBackward: Trainer['forwardBackward'] = async ({ sequence, data, datumsInStep }) => {
    asked.push(sequence, data.length, datumsInStep ?? 0);
    return { logprobs: data.map(() => [sequence]), metrics: answers.shift() ?? {} };
  };
  const request = { modelId: 'm', sequence: 7, data: [1, 2, 3].map(ofLength), loss: 'ppo' } as const;
  const { logprobs, metrics } = await forwardBackwardInParts({ forwardBackward }, request, [2, 1], never);
  assert.deepEqual(asked, [7, 2, 3, 8, 1, 3]);
  assert.deepEqual(logprobs, [[7], [7], [8]]);
  assert.deepEqual(metrics, { 'a:sum': 3, 'b:max': 5, 'c:min': 3, 'd:mean': 2, once: 2 });
});

describe('an update in several requests', () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let trainer: Trainer;
  before(async () => {
    policy = await startTestPolicy();
    trainer = policy.trainer();
  });
  after(async () => {
    trainer?.close();
    await policy?.close();
  });

  it('makes the same weights as a single one, even if each is sent twice', async () => {
    const data = [
      [5, 6, 7, 8],
      [9, 5, 6],
      [7, 7],
    ].map((ids, index): Datum => {
      const each = (value: number) => ids.slice(1).map(() => value);
      const [tokens, targets] = [ids.slice(0, -1), ids.slice(1)];
      return { tokens, targets, weights: each(1), logprobs: each(-2), advantages: each(index - 0.5) };
    });
    const settings = training.parse({ learningRate: 0.1 });
    const afterUpdate = async (sizes: readonly number[], times: number): Promise<readonly (readonly number[])[]> => {
      const modelId = await trainer.createModel({ loraRank: 4, seed: 0 });
      const optimSequence = 1 + sizes.length;
      const sequences = { forwardSequence: 1, optimSequence, sizes };
      const update = { modelId, data, sequences, learningRate: 0.1, training: settings, signal: never };
      for (let time = 0; time < times; time += 1) await applyUpdate(trainer, update);
      const sequence = optimSequence + 1;
      const forward = { modelId, sequence, data, loss: 'cross_entropy', forwardOnly: true } as const;
      return (await trainer.forwardBackward(forward)).logprobs;
    };
    const whole = await afterUpdate([3], 1);
    assert.deepEqual(await afterUpdate([1, 2], 1), whole);
    assert.deepEqual(await afterUpdate([1, 1, 1], 2), whole);
    assert.notDeepEqual(await afterUpdate([3], 0), whole);
  });
});

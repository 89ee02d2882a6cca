import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseInput } from '../../workflows/contracts/input.ts';
import { type RunRequest, runInput } from '../../workflows/contracts/run.ts';
import { sweepInput } from '../../workflows/contracts/sweep.ts';

const start = (sampling: object, more: Partial<RunRequest> = {}) =>
  parseInput('trainingRun', runInput, { tasks: 'generated:train/1', ...more, settings: { sampling } });

describe('the sampling of a run', () => {
  it('is refused at another temperature than the trainer computes with', () => {
    assert.throws(
      () => start({ temperature: 0.7 }),
      /settings\.sampling\.temperature: expected 1 in a run.*, got 0\.7/,
    );
    assert.throws(() => start({ overridable: true }), /settings\.sampling\.overridable: expected false.*, got true/);
  });

  it('is refused if it is truncated, with the field, the value and the setting that allows it', () => {
    const way = /unless allowTruncatedSampling \(--allow-truncated-sampling\) is set/;
    for (const [sampling, refusal] of [
      [{ topP: 0.8 }, /trainingRun: settings\.sampling\.topP: expected 1 in a run .*, got 0\.8/],
      [{ topK: 20 }, /trainingRun: settings\.sampling\.topK: expected -1 in a run .*, got 20/],
    ] as const) {
      assert.throws(() => start(sampling), refusal);
      assert.throws(() => start(sampling), way);
      assert.partialDeepStrictEqual(start(sampling, { allowTruncatedSampling: true }).settings, { sampling });
    }
    assert.doesNotThrow(() => start({ topP: 1, topK: -1 }));
    assert.doesNotThrow(() => start({ topK: 0 }), 'engines take 0 for no limit');
  });

  it('may be truncated in a sweep', () => {
    const sampling = { topP: 0.8, topK: 20, temperature: 0.5 };
    assert.doesNotThrow(() => sweepInput.parse({ tasks: 'generated:test/1', settings: { sampling } }));
  });
});

it('asks for the task set of a run that begins with {} or nothing', () => {
  for (const given of [{}, undefined, null]) {
    assert.throws(
      () => parseInput('trainingRun', runInput, given),
      /trainingRun: .*tasks: expected a task set, for example generated:train\/1/,
      String(given),
    );
  }
});

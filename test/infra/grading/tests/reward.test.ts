import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseReward } from '../../../../infra/grading/tests/reward.ts';
import { failure } from '../../../helpers/tasks/data-set-fixture.ts';

describe('a reward.json', () => {
  it('may be a number, an object with `reward`, or an object with one number', () => {
    assert.equal(parseReward('reward.json', '0.5\n'), 0.5);
    assert.equal(parseReward('reward.json', '{"reward": 1, "style": 0}'), 1);
    assert.equal(parseReward('reward.json', '{"correctness": 0.25}'), 0.25);
  });

  it('with several scores and no weights is invalid', () => {
    for (const content of ['{"correctness": 1, "style": 0}', '{}', '{"reward": "1"}', '[1]', '{"reward": 2}', 'nan']) {
      assert.throws(
        () => parseReward('reward.json', content),
        failure('InvalidReward', /expected one number from 0 to 1/),
        content,
      );
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Stage } from '../../../workflows/contracts/rollout.ts';
import { endingText, type Position, positionText } from '../../../workflows/rollout/details.ts';

const position: Position = {
  task: 'generated:train/1/0',
  agent: 'nop',
  host: 'one',
  epoch: 1,
  seconds: { resolveTask: 0.1, placeRollout: 0.2 },
  running: new Set(['provisionSandbox'] as const),
  waiting: new Set(),
  latest: 'provisionSandbox',
  pausedBecause: null,
  notes: [],
};

const headline = (text: string): string | undefined => text.split('\n')[0];

describe('the details of a rollout in the UI', () => {
  it('start with the running stage and its host, then list the time of every stage', () => {
    assert.equal(headline(positionText(position)), '**provisionSandbox** on one: nop at generated:train/1/0');
    assert.deepEqual(positionText(position).split('\n').slice(2, 8), [
      '- resolveTask ✓ 0.10 s',
      '- prepareImage: skipped',
      '- placeRollout ✓ 0.20 s',
      '- openTrace: skipped',
      '- **provisionSandbox** ← now',
      '- startAgent',
    ]);
  });

  it('name both stages that run at the same time', () => {
    const both = { ...position, running: new Set(['openTrace', 'provisionSandbox'] as const) };
    assert.equal(headline(positionText(both)), '**openTrace and provisionSandbox** on one: nop at generated:train/1/0');
    assert.match(positionText(both), /- \*\*openTrace\*\* ← now\n- \*\*provisionSandbox\*\* ← now\n- startAgent\n/);
  });

  it('name the stage before which it is or will be paused, and the reason', () => {
    const paused = { ...position, pausedBecause: 'lunch' };
    assert.match(
      positionText({ ...paused, running: new Set<Stage>(), waiting: paused.running }),
      /^\*\*paused before provisionSandbox\*\* \(lunch\) on one/,
    );
    assert.match(positionText(paused), /^\*\*provisionSandbox\*\* on one.*; pauses after this stage \(lunch\)\n/);
  });

  it('give the outcome, the reason and the stage', () => {
    const failure = { type: 'MissingImage', message: 'there is none', stage: 'placeRollout' } as const;
    const text = endingText(position, { outcome: 'invalid-task', reward: null, failure, account: '' });
    assert.equal(headline(text), '**invalid-task** on one: nop at generated:train/1/0');
    assert.match(text, /MissingImage at placeRollout: there is none/);
    assert.match(text, /- placeRollout ✗ 0\.20 s$/);
    assert.match(
      endingText(position, { outcome: 'scored', reward: 0.5, failure: null, account: 'tests: 1 of 2' }),
      /^\*\*scored\*\*, reward 0\.5 on one.*\n\ntests: 1 of 2\n/,
    );
  });
});

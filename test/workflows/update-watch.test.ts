import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createUpdateWatch, type UpdateWatch } from '../../workflows/run/update-watch.ts';
import { stepResult } from '../helpers/run-events.ts';

const batch = { digest: 'a', size: 1, mediaType: 'application/json' };
const empty = (watch: UpdateWatch, ones = 0): void =>
  watch.add(
    stepResult(watch.made + 1, { 'zero-variance': 8 }, { equalGroups: { 'all-0': 8 - ones, 'all-1': ones, equal: 0 } }),
  );

describe('the updates of a run', () => {
  it('are counted apart from its steps', () => {
    const watch = createUpdateWatch(3, undefined);
    watch.add(stepResult(1, { trained: 8 }, { batch }));
    watch.add(stepResult(2, { 'zero-variance': 8 }));
    watch.add(stepResult(3, { trained: 1, 'zero-variance': 7 }, { batch }));
    watch.add(stepResult(4, { skipped: 8 }, { skippedBecause: 'out of memory' }));
    assert.deepEqual([watch.made, watch.last, watch.empty.steps], [2, 3, 0]);
  });

  it('are a reason to pause if several steps in a row made none, which says why', () => {
    const watch = createUpdateWatch(6, undefined);
    for (let step = 0; step < 5; step += 1) empty(watch, step === 0 ? 7 : 0);
    watch.add(stepResult(6, { skipped: 8 }, { skippedBecause: 'out of memory' }));
    assert.equal(watch.reasonToPause(), null, 'a step that was skipped by hand does not count');
    const carried = createUpdateWatch(6, JSON.parse(JSON.stringify(watch.carried)));
    empty(carried);
    assert.match(
      carried.reasonToPause() ?? '',
      /^the last 6 steps .* of 48 groups 41 have all 0, 7 have all 1; choose/,
    );
    carried.forget();
    empty(carried);
    assert.equal(carried.reasonToPause(), null);
  });

  it('end a row of steps without any, and a group without a trained token is named apart', () => {
    const watch = createUpdateWatch(1, undefined);
    empty(watch);
    watch.add(stepResult(2, { trained: 8 }, { batch }));
    assert.equal(watch.reasonToPause(), null);
    const equalGroups = { 'all-0': 0, 'all-1': 0, equal: 1 };
    watch.add(stepResult(3, { trained: 2, 'zero-variance': 1 }, { equalGroups }));
    assert.match(
      watch.reasonToPause() ?? '',
      /of 3 groups 1 have equal rewards between 0 and 1, 2 have no token to train on;/,
    );
  });
});

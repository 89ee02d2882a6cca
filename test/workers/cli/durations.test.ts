import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ago, seconds } from '../../../workers/cli/text/output.ts';

it('a duration has at most 59 seconds beside its minutes', () => {
  assert.equal(seconds(3.2), '3.20 s');
  assert.equal(seconds(75), '75.0 s');
  assert.equal(seconds(725), '12 min 5 s');
  assert.equal(seconds(179.7), '3 min 0 s');
});

it('a moment by a clock that is ahead is no time ago, and not before now', () => {
  assert.equal(ago(new Date(Date.now() + 30_000).toISOString()), '0 s ago');
  assert.equal(ago(new Date(Date.now() - 7_200_000).toISOString()), '2 h ago');
});

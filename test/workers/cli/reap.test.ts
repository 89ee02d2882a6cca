import assert from 'node:assert/strict';
import { it } from 'node:test';
import { reapText } from '../../../workers/cli/commands/reap.ts';

it('a reaping says how much of each kind it removed and cancelled, and names all of it', () => {
  const reaped = {
    sandboxes: ['temper-a-1-agent'],
    images: ['temper-built:1-2', 'some/image:3'],
    groups: [],
    rollouts: ['r'],
  };
  assert.equal(
    reapText(reaped),
    `removed 1 sandboxes and 2 images that were not used for longest, cancelled 0 groups and 1 rollouts of closed runs and sweeps
  temper-a-1-agent
  temper-built:1-2
  some/image:3
  r`,
  );
});

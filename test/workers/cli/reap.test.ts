import assert from 'node:assert/strict';
import { it } from 'node:test';
import { reapText } from '../../../workers/cli/commands/reap.ts';

it('reapText counts what was removed and cancelled of each kind, and lists all names', () => {
  const reaped = {
    suspected: [],
    sandboxes: ['temper-a-1-agent'],
    images: ['temper-built:1-2', 'some/image:3'],
    groups: [],
    rollouts: ['r'],
  };
  assert.equal(
    reapText(reaped),
    `removed 1 sandbox and 2 unused images, cancelled 0 groups and 1 rollout of closed runs and sweeps
  temper-a-1-agent
  temper-built:1-2
  some/image:3
  r`,
  );
});

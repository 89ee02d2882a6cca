import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeSizes } from '../../../workers/cli/commands/doctor/sizes.ts';

it('doctor lists the sizes that it has measured, and names the categories that took too long', () => {
  const text = describeSizes({ caches: null, logs: 2_000, journals: 0, blobs: null });
  assert.equal(text, 'logs 2.0 KB; not measured within 10 s: caches, blobs');
  assert.equal(describeSizes({ logs: 0 }), 'nothing yet');
});

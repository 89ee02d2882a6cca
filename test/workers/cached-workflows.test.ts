import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cachedWorkflows } from '../../workers/cached-workflows.ts';

describe('the number of workflows that the control worker keeps', () => {
  for (const { gigabytes, kept } of [
    { gigabytes: 2, kept: 1_000 },
    { gigabytes: 12, kept: 2_500 },
    { gigabytes: 24, kept: 4_000 },
  ]) {
    it(`is ${kept} with ${gigabytes} GB of memory`, () => assert.equal(cachedWorkflows(gigabytes * 1e9), kept));
  }
});

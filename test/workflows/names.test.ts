import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { groupId, rolloutId, stepId, sweepRolloutId } from '../../workflows/contracts/ids.ts';
import { requireShortId } from '../../workflows/contracts/input.ts';
import { searchAttributes, shownText } from '../../workflows/contracts/search-attributes.ts';

/** The number of characters that a Temporal server takes as an id, and a SQL visibility store as a text. */
const most = 255;

describe('the names of workflows', () => {
  it('have room for those of their children, or are refused', () => {
    const longest = 'r'.repeat(200);
    const key = '0192e4c6-0000-7000-8000-0123456789ab';
    requireShortId('trainingRun', longest);
    const ids = [
      rolloutId(groupId(longest, key, 9_999_999), 255),
      stepId(longest, key, 9_999_999),
      sweepRolloutId(longest, key, { task: 9_999_999, attempt: 9_999, retry: 999 }),
    ];
    for (const id of ids) assert.ok(id.length <= most, `${id.length}: ${id}`);
    assert.throws(() => requireShortId('trainingRun', `${longest}r`), {
      type: 'InvalidInput',
      message: /^trainingRun: workflow id: expected at most 200 characters, .*, got 201: r{40}…; choose a shorter one$/,
    });
  });
});

describe('a text in the list of workflows', () => {
  it('is whole if a SQL visibility store takes it, and without its middle otherwise', () => {
    const shown = (text: string): string => shownText(searchAttributes.task, text).value;
    assert.equal(shown('t'.repeat(most)), 't'.repeat(most));
    assert.equal(shown(`${'a'.repeat(200)}${'b'.repeat(200)}`), `${'a'.repeat(127)}…${'b'.repeat(127)}`);
    const pairs = shown('😀'.repeat(200));
    assert.ok(pairs.length <= most && pairs.isWellFormed(), pairs);
  });
});

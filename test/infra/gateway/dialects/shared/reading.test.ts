import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createItemReader } from '../../../../../infra/gateway/dialects/shared/reading.ts';

function createCountedReader() {
  const places: string[] = [];
  const read = createItemReader((item, at) => {
    places.push(at);
    return { item };
  });
  return {
    read,
    /** Returns the places that were read since the last call. */
    places: () => places.splice(0),
  };
}

it('the items that a list shares with an earlier one are read once, and all others again', () => {
  const { read, places } = createCountedReader();
  const [a, b, c, d] = [{ id: 'a' }, { id: 'b' }, 'c', { id: 'd' }];
  const first = read([a, b], 'messages');
  assert.deepEqual(places(), ['messages.0', 'messages.1']);
  const second = read([a, b, c, d], 'messages');
  assert.deepEqual(places(), ['messages.2', 'messages.3']);
  assert.equal(second[1], first[1]);
  const changed = read([a, { id: 'b' }, d], 'messages');
  assert.deepEqual(places(), ['messages.1', 'messages.2']);
  assert.deepEqual(changed, [{ item: a }, { item: { id: 'b' } }, { item: d }]);
  read([{ id: 'a' }, b], 'messages');
  assert.deepEqual(places(), ['messages.0', 'messages.1'], 'it begins with another object');
});

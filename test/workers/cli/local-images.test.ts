import assert from 'node:assert/strict';
import { it } from 'node:test';
import { lostImages } from '../../../workers/cli/text/local-images.ts';

it('names the images that local sandboxes do not have, each once and the first three', () => {
  assert.match(lostImages('local', 'auto', ['a:1', 'a:1', 'b:2']) ?? '', /images \(a:1, b:2\): /);
  assert.match(lostImages('auto', 'local', ['a', 'b', 'c', 'd', 'e']) ?? '', /images \(a, b, c and 2 more\): /);
});

it('says nothing about generated tasks, nor where the sandboxes are not known to be local', () => {
  assert.equal(lostImages('local', 'auto', ['temper-tasks:bookworm']), null);
  assert.equal(lostImages('docker', 'local', ['a:1']), null);
  assert.equal(lostImages('auto', 'auto', ['a:1']), null);
});

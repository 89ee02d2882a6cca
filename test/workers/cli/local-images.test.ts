import assert from 'node:assert/strict';
import { it } from 'node:test';
import { lostImages, withoutImages } from '../../../workers/cli/text/local-images.ts';

it('names the images that local sandboxes do not have, each once and the first three', () => {
  assert.match(lostImages('local', 'auto', ['a:1', 'a:1', 'b:2']) ?? '', /images \(a:1, b:2\): /);
  assert.match(lostImages('auto', 'local', ['a', 'b', 'c', 'd', 'e']) ?? '', /images \(a, b, c and 2 more\): /);
});

it('says nothing about generated tasks, nor where the sandboxes are not known to be local', () => {
  assert.equal(lostImages('local', 'auto', ['temper-tasks:bookworm']), null);
  assert.equal(lostImages('docker', 'local', ['a:1']), null);
  assert.equal(lostImages('auto', 'auto', ['a:1']), null);
});

it('says what becomes of tasks that need an image, by the kind that the settings prefer and what Docker says', () => {
  assert.match(withoutImages('local', null) ?? '', /refused, since TEMPER_SANDBOX is local/);
  assert.match(withoutImages('auto', 'no answer') ?? '', /refused, .* Docker is not ready: no answer/);
  assert.match(withoutImages('docker', 'no answer') ?? '', /cannot start, .*: no answer/);
  for (const kind of ['auto', 'docker'] as const) assert.equal(withoutImages(kind, null), null);
  for (const kind of ['kubernetes', 'e2b'] as const) assert.equal(withoutImages(kind, 'no answer'), null);
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createBoundedLog } from '../../../../../infra/sandbox/docker/images/bounded-log.ts';

it('a bounded log keeps the beginning and the end of an output of any length', () => {
  const log = createBoundedLog();
  log.push('first line\n');
  for (let index = 0; index < 20_000; index += 1) log.push(`line ${index} ${'x'.repeat(100)}\n`);
  log.push('error one\n\nerror two\n');
  const text = String(log.bytes());
  assert.ok(text.length < 2 * 2 ** 20, `${text.length} bytes`);
  assert.match(text, /^first line\n[\s\S]*… output left out …[\s\S]*error two\n$/);
  assert.equal(log.end(20), 'error one | error two');
});
